//! How the value chains of a tile's queries are cut so that most keys serve all queries at once.
//!
//! Any cut is right as long as each query meets its keys in ascending order.

/// Keys of a chunk, counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyRange {
    pub(super) first: usize,
    pub(super) end: usize,
}

/// Neighbouring queries that take the same keys next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) first_query: usize,
    pub(super) num_queries: usize,
    pub(super) keys: KeyRange,
}

/// Appends the segments of queries that see `ranges`, non-empty and ascending in both bounds.
pub(super) fn push_segments(ranges: &[KeyRange], segments: &mut Vec<Segment>) {
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
        return;
    };
    let alone = |query: usize, keys: KeyRange| Segment {
        first_query: query,
        num_queries: 1,
        keys,
    };
    let (shared_first, shared_end) = (last.first, first.end);
    if shared_first >= shared_end {
        // A window narrower than the tile: no key serves all.
        segments.extend(
            ranges
                .iter()
                .enumerate()
                .map(|(query, &keys)| alone(query, keys)),
        );
        return;
    }
    for (query, keys) in ranges.iter().enumerate() {
        if keys.first < shared_first {
            segments.push(alone(
                query,
                KeyRange {
                    end: shared_first,
                    ..*keys
                },
            ));
        }
    }
    let mut first = shared_first;
    for (query, keys) in ranges.iter().enumerate() {
        if first < keys.end {
            segments.push(Segment {
                first_query: query,
                num_queries: ranges.len() - query,
                keys: KeyRange {
                    first,
                    end: keys.end,
                },
            });
            first = keys.end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replays the segments and checks that each query meets exactly its keys, ascending.
    fn check_segments(ranges: &[(usize, usize)]) {
        let ranges: Vec<KeyRange> = ranges
            .iter()
            .map(|&(first, end)| KeyRange { first, end })
            .collect();
        let mut segments = Vec::new();
        push_segments(&ranges, &mut segments);
        let mut met = vec![Vec::new(); ranges.len()];
        for segment in &segments {
            for met in &mut met[segment.first_query..][..segment.num_queries] {
                met.extend(segment.keys.first..segment.keys.end);
            }
        }
        for (query, keys) in ranges.iter().enumerate() {
            let expected: Vec<usize> = (keys.first..keys.end).collect();
            assert_eq!(met[query], expected, "query {query} of {ranges:?}");
        }
    }

    #[test]
    fn every_query_meets_its_keys_once_and_ascending() {
        check_segments(&[]);
        check_segments(&[(0, 1)]);
        check_segments(&[(0, 8), (0, 8), (0, 8)]);
        check_segments(&[(0, 1), (0, 1), (0, 2), (0, 2), (0, 3)]);
        check_segments(&[(3, 200), (4, 201), (5, 202)]);
        check_segments(&[(3, 256), (4, 256), (5, 256)]);
        check_segments(&[(0, 2), (1, 3), (2, 4), (3, 5)]);
        check_segments(&[(0, 2), (0, 2), (1, 3), (1, 3)]);
    }
}
