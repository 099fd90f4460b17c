// A text that is already there, scored: how surprising each of its tokens is to the model.
import { memo } from "preact/compat";
import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { type Schemas, isAbort, messageOf, post } from "../api/client";
import { bitsOf, count, fixed, percent, visible } from "../ui/format";
import { Inspector } from "../ui/inspector";
import { Busy, Copy, Empty, Exact, Failure, Field, Text } from "../ui/parts";
import { SurprisalPlot } from "../ui/plot";
import { Legend, type Token, TokenText, tokenOf } from "../ui/tokens";

const TOP = 8;
const EXAMPLE = "The whale is the largest animal that has ever lived. It is not a fish but a mammal: it breathes air, is warm-blooded, and feeds its young on milk. The blue whale eats almost nothing but spreadsheets.";

export function Score() {
  const [text, setText] = useState(EXAMPLE);
  const [tokens, setTokens] = useState<Token[] | null>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const [plotted, setPlotted] = useState<number | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const scoredText = useRef("");

  const score = async () => {
    const control = new AbortController();
    setRunning(control);
    setError(null);
    const body = { prompt: text, echo: true, max_tokens: 0, logprobs: TOP, logprobs_content: true, return_token_ids: true };
    try {
      const reply = await post<Schemas["TextCompletion"]>("/v1/completions", body, control.signal);
      const choice = reply.choices[0];
      const content = choice?.logprobs?.content ?? [];
      const first = choice?.logprobs?.tokens[0] ?? "";
      const ids = choice?.prompt_token_ids ?? [];
      setTokens(content.map((entry, index) => (entry ? tokenOf(entry) : { text: index === 0 ? first : "", logprob: null, top: [], id: ids[index] ?? null, bytes: [] })));
      setSelected(null);
      scoredText.current = text;
    } catch (thrown) {
      if (!isAbort(thrown)) {
        setError(messageOf(thrown));
        setTokens(null);
      }
    }
    setRunning(null);
  };

  const step = useCallback((by: number) => setSelected((at) => (at === null || !tokens ? at : Math.max(0, Math.min(tokens.length - 1, at + by)))), [tokens]);
  const token = selected === null ? undefined : tokens?.[selected];

  return (
    <div class={`score split${token ? " has-side" : ""}`}>
      <div class="main-column">
        <form class="panel" onSubmit={(event) => { event.preventDefault(); void score(); }}>
          <Field label="Text" hint="Any text; each token is scored given all before it."><Text rows={4} value={text} onText={setText} most={220} /></Field>
          <div class="row">
            {running ? <button type="button" class="primary" onClick={() => running.abort()}>Stop</button> : <button type="submit" class="primary" disabled={text === ""}>Score</button>}
            <span class="hint">{count([...text].length)} characters</span>
          </div>
        </form>
        {running && <Busy text="Scoring" />}
        {error && <Failure message={error} retry={score} />}
        {!tokens && !running && !error && <Empty title="Nothing scored yet"><p>The heat map shows where the model was surprised; perplexity sums it up.</p></Empty>}
        {tokens && (
          <>
            <Summary tokens={tokens} text={scoredText.current} />
            <SurprisalPlot tokens={tokens} pointed={pointed} onPoint={setPlotted} onSelect={setSelected} />
            <section class="heat" aria-label="Heat map">
              <Legend />
              <TokenText key={scoredText.current} tokens={tokens} label={`Scored text, ${tokens.length} tokens; arrows move, Enter selects`} selected={selected} onSelect={setSelected} onPoint={setPointed} pointed={plotted} />
            </section>
            <Surprising tokens={tokens} onSelect={setSelected} />
          </>
        )}
      </div>
      {token && selected !== null && (
        <aside class="side"><Inspector token={token} index={selected} onClose={() => setSelected(null)} onStep={step} /></aside>
      )}
    </div>
  );
}

const Summary = memo(function Summary({ tokens, text }: { tokens: Token[]; text: string }) {
  const sums = useMemo(() => {
    const scored = tokens.filter((token) => token.logprob !== null);
    const joint = scored.reduce((sum, token) => sum + token.logprob!, 0);
    const size = new TextEncoder().encode(text).length;
    return { num: scored.length, joint, perplexity: Math.exp(-joint / scored.length), perByte: bitsOf(joint) / size };
  }, [tokens, text]);
  const table = () => ["token\tid\tlogprob", ...tokens.map((token) => `${JSON.stringify(token.text)}\t${token.id}\t${token.logprob ?? ""}`)].join("\n");
  if (sums.num === 0) return <p class="hint">A single token has nothing before it, so there is nothing to score.</p>;
  return (
    <dl class="figures">
      <div><dt>perplexity</dt><dd><Exact value={sums.perplexity} shown={fixed(sums.perplexity, 2)} label="perplexity" /></dd></div>
      <div><dt>scored tokens</dt><dd>{count(sums.num)}</dd></div>
      <div><dt>log-probability</dt><dd><Exact value={sums.joint} shown={fixed(sums.joint, 2)} label="log-probability" /></dd></div>
      <div><dt>bits a token</dt><dd><Exact value={bitsOf(sums.joint) / sums.num} shown={fixed(bitsOf(sums.joint) / sums.num, 2)} label="bits a token" /></dd></div>
      <div><dt>bits a byte</dt><dd><Exact value={sums.perByte} shown={fixed(sums.perByte)} label="bits a byte" /></dd></div>
      <div><dt>all values</dt><dd><Copy text={table} shown="copy table" label="values" /></dd></div>
    </dl>
  );
});

const Surprising = memo(function Surprising({ tokens, onSelect }: { tokens: Token[]; onSelect: (index: number) => void }) {
  const most = useMemo(() => tokens.map((token, index) => ({ token, index })).filter(({ token }) => token.logprob !== null).sort((a, b) => a.token.logprob! - b.token.logprob!).slice(0, 8), [tokens]);
  return (
    <section class="surprising" aria-label="Most surprising tokens">
      <h3>Most surprising</h3>
      <table>
        <thead><tr><th scope="col">token</th><th scope="col">place</th><th scope="col">probability</th><th scope="col">bits</th><th scope="col">likelier</th></tr></thead>
        <tbody>
          {most.map(({ token, index }) => (
            <tr key={index}>
              <td><button type="button" class="link" onClick={() => onSelect(index)}><code>{visible(token.text)}</code></button></td>
              <td class="figure">{index}</td>
              <td class="figure"><Exact value={Math.exp(token.logprob!)} shown={percent(Math.exp(token.logprob!))} label="probability" /></td>
              <td class="figure">{fixed(bitsOf(token.logprob!), 2)}</td>
              <td><code>{token.top[0] ? visible(token.top[0].token) : ""}</code></td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
});
