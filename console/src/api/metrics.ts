// The Prometheus text format, as far as this server writes it.

export interface Histogram {
  /** Upper ends of the buckets in seconds; the last is infinite. */
  ends: number[];
  /** How many observations lie in each, not added up. */
  counts: number[];
  sum: number;
  count: number;
}

/** Values by name and labels other than the model's: `assay_kv_blocks{state="used"}`. */
export type Samples = Map<string, number>;

export function parseMetrics(text: string): Samples {
  const samples: Samples = new Map();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const end = line.lastIndexOf(" ");
    const [name = "", labels = ""] = line.slice(0, end).split(/[{}]/);
    const kept = labels.match(/[a-z_]+="[^"]*"/g)?.filter((label) => !label.startsWith("model_name=")) ?? [];
    samples.set(kept.length > 0 ? `${name}{${kept.join(",")}}` : name, Number(line.slice(end + 1).replace("+Inf", "Infinity")));
  }
  return samples;
}

/** The histogram `name`, less what it was at an earlier time. */
export function histogram(samples: Samples, name: string, before?: Samples): Histogram {
  const prefix = `${name}_bucket{le="`;
  const value = (key: string) => (samples.get(key) ?? 0) - (before?.get(key) ?? 0);
  const ends: number[] = [];
  const counts: number[] = [];
  let below = 0;
  for (const key of samples.keys()) {
    if (!key.startsWith(prefix)) continue;
    const end = key.slice(prefix.length, -2);
    const upTo = value(key);
    ends.push(end === "+Inf" ? Infinity : Number(end));
    counts.push(upTo - below);
    below = upTo;
  }
  return { ends, counts, sum: value(`${name}_sum`), count: value(`${name}_count`) };
}

/** Where a share of the observations lies below, read linearly inside its bucket; null where there are none. */
export function quantile({ ends, counts, count }: Histogram, share: number): number | null {
  if (count === 0) return null;
  let below = 0;
  let start = 0;
  for (const [index, end] of ends.entries()) {
    const inside = counts[index] ?? 0;
    if (below + inside >= share * count && inside > 0) {
      return end === Infinity ? start : start + ((share * count - below) / inside) * (end - start);
    }
    below += inside;
    start = end;
  }
  return start;
}
