// One question's answer: its distribution, how much of the model's mind it covers, and how it was read.
import { useState } from "preact/hooks";
import type { Schemas } from "../api/client";
import { fixed, percent } from "../ui/format";
import { Bar, Choice, Exact, Facts } from "../ui/parts";
import { Trie } from "./trie";

export interface Answered {
  title: string;
  /** What it comes to, in words. */
  answer: string;
  /** By option, in the caller's order. */
  options: { label: string; probability: number; raw: number | null }[];
  labelMass: number;
  confidence: number | null;
  /** Further figures. */
  facts: [string, number, string][];
  boundary: string;
  diagnostics: Schemas["Diagnostics"] | null;
  refused: boolean;
}

const SHOWN = 12;

export function Distribution({ of }: { of: Answered }) {
  const [order, setOrder] = useState<"given" | "likely">("given");
  const [all, setAll] = useState(false);
  const [trie, setTrie] = useState(false);
  const most = Math.max(...of.options.map((option) => option.probability), 1e-300);
  const options = order === "likely" ? [...of.options].sort((a, b) => b.probability - a.probability) : of.options;
  const isLong = options.length > 40;
  const shown = all || !isLong ? options : options.slice(0, SHOWN);
  const winner = of.options.find((option) => option.probability === most);
  return (
    <section class="answer" aria-label={of.title}>
      <header>
        <h3>{of.title}</h3>
        <p class="result">
          {of.refused ? <span class="refused">refused: label mass below the limit</span> : <><strong>{of.answer}</strong>{winner && <> <Exact value={winner.probability} shown={percent(winner.probability)} label="probability" /></>}</>}
        </p>
      </header>
      {of.options.length > 2 && <Choice label={`Order of ${of.title}`} value={order} onChange={setOrder} options={[["given", "as given"], ["likely", "most likely first"]]} />}
      <ul class="options" aria-label={`Distribution of ${of.title}`}>
        {shown.map((option) => (
          <li key={option.label} class={`${option === winner ? "wins" : ""}${option.raw === null ? "" : " with-raw"}`}>
            <span class="name" title={option.label}>{option.label}</span>
            <Bar share={option.probability} kind={option === winner ? "chosen" : ""} />
            <Exact value={option.probability} shown={percent(option.probability)} label={option.label} />
            {option.raw !== null && <span class="raw" title={`before debiasing: ${option.raw}`}>{percent(option.raw)}</span>}
          </li>
        ))}
      </ul>
      {of.options.some((option) => option.raw !== null) && <p class="hint">The second figures are those before debiasing.</p>}
      {isLong && <button type="button" class="link" onClick={() => setAll(!all)}>{all ? "show fewer" : `show all ${options.length}`}</button>}
      <div class="mass">
        <span>label mass</span>
        <Bar share={of.labelMass} kind="plain" />
        <Exact value={of.labelMass} shown={percent(of.labelMass)} label="label mass" />
      </div>
      <p class="hint">{percent(Math.max(0, 1 - of.labelMass))} of the model’s probability is for saying something else.</p>
      <Facts
        rows={[
          ...(of.confidence === null ? [] : [["confidence", <Exact value={of.confidence} shown={fixed(of.confidence)} label="confidence" />] as [string, preact.JSX.Element]]),
          ...of.facts.map(([name, value, shown]): [string, preact.JSX.Element] => [name, <Exact value={value} shown={shown} label={name} />]),
          ["boundary", of.boundary],
          ...(of.diagnostics ? [["prompt", `${of.diagnostics.prompt_tokens} tokens, ${of.diagnostics.cached_tokens} cached`] as [string, string], ["greedy", of.diagnostics.argmax_is_label ? "answers with a label" : "says something else"] as [string, string]] : []),
        ]}
      />
      {of.diagnostics && (
        <details class="trie-details" onToggle={(event) => setTrie(event.currentTarget.open)}>
          <summary>Token tree, {of.diagnostics.trie_edges} steps</summary>
          {trie && <Trie labels={of.diagnostics.labels} />}
        </details>
      )}
    </section>
  );
}
