//! The most recently used constraints, by their text.

use std::collections::VecDeque;

/// A small least-recently-used map; the front was used last.
#[derive(Debug)]
pub(crate) struct RecentlyUsed<V> {
    entries: VecDeque<(String, V)>,
    capacity: usize,
}

impl<V: Clone> RecentlyUsed<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: VecDeque::with_capacity(capacity),
            capacity,
        }
    }

    /// The value of `key`, which counts as a use.
    pub(crate) fn get(&mut self, key: &str) -> Option<V> {
        let index = self.entries.iter().position(|(held, _)| held == key)?;
        let entry = self.entries.remove(index)?;
        let value = entry.1.clone();
        self.entries.push_front(entry);
        Some(value)
    }

    /// Keeps `value`; the least recently used one leaves if there is no room.
    pub(crate) fn insert(&mut self, key: String, value: V) {
        self.entries.retain(|(held, _)| *held != key);
        self.entries.truncate(self.capacity.saturating_sub(1));
        self.entries.push_front((key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::RecentlyUsed;

    #[test]
    fn the_least_recently_used_leaves() {
        let mut cache = RecentlyUsed::new(2);
        cache.insert("a".to_owned(), 1);
        cache.insert("b".to_owned(), 2);
        assert_eq!(cache.get("a"), Some(1));
        cache.insert("c".to_owned(), 3);
        assert_eq!(
            [cache.get("a"), cache.get("b"), cache.get("c")],
            [Some(1), None, Some(3)]
        );
    }
}
