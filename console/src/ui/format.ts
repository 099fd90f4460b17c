// Numbers for people. What is rounded here can always be had in full: see Exact.

export const bitsOf = (logprob: number): number => -logprob / Math.LN2;

/** A probability in as many digits as tell it from 0 and 1. */
export function percent(probability: number): string {
  const value = probability * 100;
  if (value === 0) return "0 %";
  if (value >= 99.9995) return "100 %";
  if (value >= 99.9) return `${value.toFixed(3)} %`;
  if (value < 0.001) return `${value.toExponential(1)} %`;
  return `${value < 0.1 ? value.toFixed(3) : value < 10 ? value.toFixed(2) : value.toFixed(1)} %`;
}

export const fixed = (value: number, digits = 3): string => value.toFixed(digits).replace("-", "−");

export const count = (value: number): string => value.toLocaleString("en-US", { maximumFractionDigits: 0 });

export function bytes(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${units[unit]}`;
}

export function seconds(value: number): string {
  if (value < 0.001) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 1) return `${(value * 1e3).toFixed(value < 0.01 ? 1 : 0)} ms`;
  return `${value.toFixed(value < 10 ? 2 : 0)} s`;
}

/** A short large number: 135M. */
export function short(value: number): string {
  return new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 }).format(value);
}

/** A token's text with its blanks and line breaks to be seen. */
export function visible(token: string): string {
  if (token === "") return "∅";
  return token.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/^ +| +$|^ +$/g, (blanks) => "␣".repeat(blanks.length));
}

/** How strongly a token is tinted, 0 to 12: its surprisal, full at 9 bits. */
export function tint(logprob: number | null): number {
  if (logprob === null) return 0;
  const share = Math.min(1, bitsOf(logprob) / 9);
  return Math.round(12 * Math.sqrt(Math.max(0, share)) - 0.2);
}
