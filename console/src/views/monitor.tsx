// The server at work, from its own metrics.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Schemas, get, getText, isAbort, messageOf } from "../api/client";
import { type Histogram, type Samples, histogram, parseMetrics, quantile } from "../api/metrics";
import { bytes, count, fixed, percent, seconds, short } from "../ui/format";
import { Bar, Busy, Choice, Failure } from "../ui/parts";
import { Spark } from "../ui/plot";

interface Moment {
  at: number;
  samples: Samples;
}

const EVERY_MS = 1000;
const KEPT = 180;

const HISTOGRAMS = [
  ["vllm:e2e_request_latency_seconds", "whole request"],
  ["vllm:time_to_first_token_seconds", "first text"],
  ["vllm:request_queue_time_seconds", "queue"],
  ["assay_request_overhead_seconds", "server overhead"],
] as const;
type Timed = (typeof HISTOGRAMS)[number][0];

export function Monitor({ active }: { active: boolean }) {
  const [moments, setMoments] = useState<Moment[]>([]);
  const [about, setAbout] = useState<Schemas["About"] | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [timed, setTimed] = useState<Timed>("vllm:e2e_request_latency_seconds");
  const [since, setSince] = useState<"start" | "opened">("start");
  const first = useRef<Samples | null>(null);

  useEffect(() => {
    if (!active) return;
    const control = new AbortController();
    let timer = 0;
    const look = async () => {
      try {
        const samples = parseMetrics(await getText("/metrics", control.signal));
        first.current ??= samples;
        setMoments((moments) => [...moments, { at: performance.now(), samples }].slice(-KEPT));
        setError(null);
      } catch (thrown) {
        if (isAbort(thrown)) return;
        setError(messageOf(thrown));
      }
      timer = window.setTimeout(look, EVERY_MS);
    };
    void look();
    if (!about) get<Schemas["About"]>("/v1/about", control.signal).then(setAbout, () => {});
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [active]);

  const now = moments.at(-1);
  if (!now) return error ? <Failure message={error} /> : <Busy text="Reading the metrics" />;

  const value = (name: string, { samples } = now) => samples.get(name) ?? 0;
  /** How fast a counter rose between neighbouring moments, a second. */
  const rates = (name: string) => moments.slice(1).map((moment, index) => {
    const before = moments[index]!;
    return Math.max(0, (value(name, moment) - value(name, before)) / ((moment.at - before.at) / 1000));
  });
  const recent = (name: string) => {
    const last = rates(name).slice(-5);
    return last.length === 0 ? 0 : last.reduce((sum, rate) => sum + rate, 0) / last.length;
  };
  const generation = "vllm:generation_tokens_total";
  const prompt = "vllm:prompt_tokens_total";
  const hits = value("vllm:prefix_cache_hits_total");
  const queries = value("vllm:prefix_cache_queries_total");
  const drafted = value("vllm:spec_decode_num_draft_tokens_total");
  const blocks = (["used", "cached", "free"] as const).map((state) => [state, value(`assay_kv_blocks{state="${state}"}`)] as const);
  const allBlocks = blocks.reduce((sum, [, number]) => sum + number, 0);
  const ended = ["stop", "length"].map((reason) => value(`vllm:request_success_total{finished_reason="${reason}"}`));
  const taken = histogram(now.samples, timed, since === "opened" ? first.current ?? undefined : undefined);
  const blockBytes = about?.kv_cache.block_bytes ?? 0;

  return (
    <div class="monitor">
      {error && <Failure message={error} />}
      <div class="cards">
        <section class="card"><h2>Requests</h2>
          <p class="big">{count(value("vllm:num_requests_running"))} <span>running</span></p>
          <Spark values={moments.map((moment) => value("vllm:num_requests_running", moment))} label="Running requests over the last minutes" />
          <dl><div><dt>waiting</dt><dd>{count(value("vllm:num_requests_waiting"))}</dd></div><div><dt>ended</dt><dd>{count(ended[0]! + ended[1]!)}</dd></div><div><dt>decisions</dt><dd>{count(value("assay_decisions_total"))}</dd></div><div><dt>refused, cancelled</dt><dd>{count(value("assay_requests_refused_total"))}, {count(value("assay_requests_cancelled_total"))}</dd></div></dl>
        </section>
        <section class="card"><h2>Generation</h2>
          <p class="big">{count(recent(generation))} <span>tokens/s</span></p>
          <Spark values={rates(generation)} label="Generated tokens a second over the last minutes" />
          <dl><div><dt>in all</dt><dd title={String(value(generation))}>{short(value(generation))}</dd></div><div><dt>passes</dt><dd>{short(value("assay_steps_total"))}</dd></div><div><dt>drafts kept</dt><dd>{drafted > 0 ? percent(value("vllm:spec_decode_num_accepted_tokens_total") / drafted) : "none made"}</dd></div></dl>
        </section>
        <section class="card"><h2>Prompts</h2>
          <p class="big">{count(recent(prompt))} <span>tokens/s</span></p>
          <Spark values={rates(prompt)} label="Prompt tokens a second over the last minutes" />
          <dl><div><dt>in all</dt><dd title={String(value(prompt))}>{short(value(prompt))}</dd></div><div><dt>found in the cache</dt><dd>{queries > 0 ? percent(hits / queries) : "–"}</dd></div><div><dt>cache hits</dt><dd title={String(hits)}>{short(hits)} tokens</dd></div></dl>
        </section>
        <section class="card"><h2>Memory</h2>
          <p class="big">{bytes(value("process_resident_memory_bytes"))}</p>
          <div class="stack" role="img" aria-label={`Key and value blocks: ${blocks.map(([state, number]) => `${number} ${state}`).join(", ")}`}>
            {blocks.map(([state, number]) => <span key={state} class={state} ref={(element) => { if (element) element.style.flexGrow = String(number / Math.max(1, allBlocks)); }} />)}
          </div>
          <dl>{blocks.map(([state, number]) => <div key={state}><dt><i class={`swatch ${state}`} /> KV {state}</dt><dd title={`${number} blocks`}>{blockBytes ? bytes(number * blockBytes) : `${count(number)} blocks`}</dd></div>)}<div><dt>given up</dt><dd>{count(value("assay_prefix_cache_evictions_total"))} blocks</dd></div></dl>
        </section>
        <section class="card"><h2>Device</h2>
          <p class="big device">{about ? about.device.name : "–"}</p>
          <dl>{about && <><div><dt>instruction set</dt><dd>{about.device.isa}</dd></div><div><dt>threads</dt><dd>{about.device.num_threads}</dd></div><div><dt>at once</dt><dd>{about.device.max_num_seqs} sequences</dd></div><div><dt>speculation</dt><dd>{about.device.speculation}</dd></div></>}<div><dt>numerical errors</dt><dd>{count(value("assay_numerical_errors_total"))}</dd></div></dl>
        </section>
      </div>
      <section class="latency" aria-label="Latency">
        <header>
          <h2>Latency</h2>
          <Choice<Timed> label="What is timed" value={timed} onChange={setTimed} options={HISTOGRAMS} />
          <Choice label="Since when" value={since} onChange={setSince} options={[["start", "since start"], ["opened", "since this view opened"]]} />
        </header>
        <Times of={taken} />
      </section>
    </div>
  );
}

/** A range whose unit is written once where both ends have it. */
function between(start: number, end: number): string {
  const [from, to] = [seconds(start), seconds(end)];
  const [value, unit] = from.split(" ");
  return start === 0 ? `below ${to}` : to.endsWith(` ${unit}`) ? `${value} – ${to}` : `${from} – ${to}`;
}

function Times({ of }: { of: Histogram }) {
  if (of.count === 0) return <p class="hint">No request has been timed yet.</p>;
  const most = Math.max(...of.counts);
  const from = of.counts.findIndex((number) => number > 0);
  const to = of.counts.findLastIndex((number) => number > 0);
  const start = (index: number) => (index === 0 ? 0 : of.ends[index - 1]!);
  return (
    <>
      <dl class="figures">
        {[0.5, 0.9, 0.99].map((share) => <div key={share}><dt>p{share * 100}, about</dt><dd>{seconds(quantile(of, share) ?? 0)}</dd></div>)}
        <div><dt>mean</dt><dd>{seconds(of.sum / of.count)}</dd></div>
        <div><dt>requests</dt><dd>{count(of.count)}</dd></div>
      </dl>
      <ul class="options times" aria-label="Requests by time">
        {of.counts.slice(from, to + 1).map((number, offset) => {
          const index = from + offset;
          const end = of.ends[index]!;
          return (
            <li key={end}>
              <span class="name">{end === Infinity ? `over ${seconds(start(index))}` : between(start(index), end)}</span>
              <Bar share={number / most} kind="plain" />
              <span class="figure">{count(number)} · {fixed((100 * number) / of.count, 0)} %</span>
            </li>
          );
        })}
      </ul>
    </>
  );
}
