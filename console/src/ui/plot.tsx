// Surprisal along a text, and small lines over time. Drawn as SVG paths, whose colours are the theme's.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { bitsOf, fixed } from "./format";
import { type Token, said } from "./tokens";

const WIDTH = 1000;
const HEIGHT = 160;
const MOST_COLUMNS = 1000;

/** The surprisals as bars, the most surprising of each place where there are more tokens than places. */
function bars(bits: number[], top: number): string {
  const columns = Math.min(MOST_COLUMNS, bits.length);
  const width = WIDTH / columns;
  let path = "";
  for (let column = 0; column < columns; column += 1) {
    const from = Math.floor((column * bits.length) / columns);
    const to = Math.max(from + 1, Math.floor(((column + 1) * bits.length) / columns));
    const height = (Math.max(...bits.slice(from, to)) / top) * HEIGHT;
    const x = (column * width).toFixed(2);
    path += `M${x} ${HEIGHT}v${(-height).toFixed(2)}h${(width * 0.86).toFixed(2)}v${height.toFixed(2)}z`;
  }
  return path;
}

/** The mean over the `window` tokens around each place. */
function running(bits: number[], top: number, window: number): string {
  const sums = [0];
  for (const value of bits) sums.push(sums.at(-1)! + value);
  const step = Math.max(1, Math.floor(bits.length / 400));
  const points: string[] = [];
  for (let at = 0; at < bits.length; at += step) {
    const from = Math.max(0, at - window);
    const to = Math.min(bits.length, at + window + 1);
    const mean = (sums[to]! - sums[from]!) / (to - from);
    points.push(`${(((at + 0.5) / bits.length) * WIDTH).toFixed(1)} ${(HEIGHT - (mean / top) * HEIGHT).toFixed(1)}`);
  }
  return `M${points.join("L")}`;
}

export function SurprisalPlot({ tokens, pointed, onPoint, onSelect }: { tokens: Token[]; pointed: number | null; onPoint: (index: number | null) => void; onSelect: (index: number) => void }) {
  const box = useRef<SVGSVGElement>(null);
  const cursor = useRef<SVGLineElement>(null);
  const bits = useMemo(() => tokens.map((token) => (token.logprob === null ? 0 : bitsOf(token.logprob))), [tokens]);
  const top = useMemo(() => Math.max(4, ...bits), [bits]);
  const path = useMemo(() => bars(bits, top), [bits, top]);
  const mean = useMemo(() => running(bits, top, Math.max(4, Math.round(bits.length / 60))), [bits, top]);

  useEffect(() => {
    const line = cursor.current;
    if (!line) return;
    line.style.display = pointed === null ? "none" : "";
    if (pointed !== null) line.style.transform = `translateX(${((pointed + 0.5) / tokens.length) * WIDTH}px)`;
  }, [pointed, tokens]);

  const at = (event: PointerEvent | MouseEvent) => {
    const place = box.current!.getBoundingClientRect();
    return Math.max(0, Math.min(tokens.length - 1, Math.floor(((event.clientX - place.left) / place.width) * tokens.length)));
  };
  const token = pointed === null ? undefined : tokens[pointed];
  return (
    <figure class="plot">
      <figcaption>
        <span>Surprisal, bits{tokens.length > MOST_COLUMNS ? ", the highest of each place" : ""}; the line is the running mean</span>
        <span class="figure">{token ? `${pointed}: ${said(token)}` : `highest ${fixed(top, 1)}`}</span>
      </figcaption>
      <svg ref={box} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`Surprisal of ${tokens.length} tokens, highest ${fixed(top, 1)} bits; the list of the most surprising tokens says the same`} onPointerMove={(event) => onPoint(at(event))} onPointerLeave={() => onPoint(null)} onClick={(event) => onSelect(at(event))}>
        <path class="bars" d={path} />
        <path class="mean" d={mean} vector-effect="non-scaling-stroke" />
        <line ref={cursor} class="cursor" x1="0" x2="0" y1="0" y2={HEIGHT} vector-effect="non-scaling-stroke" />
      </svg>
    </figure>
  );
}

/** A value over the last minutes. */
export function Spark({ values, label }: { values: number[]; label: string }) {
  const top = Math.max(...values, 1e-9);
  const last = values.length - 1;
  const points = values.map((value, index) => `${((index / Math.max(1, last)) * 100).toFixed(1)} ${(30 - (value / top) * 28).toFixed(1)}`);
  return (
    <svg class="spark" viewBox="0 0 100 31" preserveAspectRatio="none" role="img" aria-label={label}>
      {last > 0 && <path class="area" d={`M0 31L${points.join("L")}L100 31z`} />}
      {last > 0 && <path class="mean" d={`M${points.join("L")}`} vector-effect="non-scaling-stroke" />}
    </svg>
  );
}
