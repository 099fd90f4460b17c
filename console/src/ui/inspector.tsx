// One token: its numbers, and what the model would have said instead.
import type { Schemas } from "../api/client";
import { bitsOf, fixed, percent, visible } from "./format";
import { Bar, Exact, Facts } from "./parts";
import type { Token } from "./tokens";

export type Alternative = Schemas["Alternative"];

interface Props {
  token: Token;
  index: number;
  /** Goes on with an alternative in the token's place. */
  onContinue?: (alternative: Alternative) => void;
  /** Why it cannot go on, where it cannot. */
  why?: string;
  onClose: () => void;
  onStep: (by: number) => void;
}

export function Inspector({ token, index, onContinue, why, onClose, onStep }: Props) {
  const { logprob, top } = token;
  const isChosen = (one: Alternative) => one.logprob === logprob && (token.id === null || one.token_id === undefined || one.token_id === token.id);
  const listed = top.reduce((sum, one) => sum + Math.exp(one.logprob), 0);
  const inList = top.some(isChosen);
  const rest = Math.max(0, 1 - listed - (inList || logprob === null ? 0 : Math.exp(logprob)));
  const rank = top.findIndex(isChosen);
  return (
    <section class="inspector" aria-label="Selected token">
      <header>
        <code class="inspected">{visible(token.text)}</code>
        <span class="steps">
          <button type="button" class="icon" aria-label="Token before" onClick={() => onStep(-1)}>‹</button>
          <button type="button" class="icon" aria-label="Token after" onClick={() => onStep(1)}>›</button>
          <button type="button" class="icon" aria-label="Close" onClick={onClose}>×</button>
        </span>
      </header>
      {logprob === null ? (
        <p class="hint">Nothing stands before the first token, so it has no probability.</p>
      ) : (
        <>
          <Facts
            rows={[
              ["probability", <Exact value={Math.exp(logprob)} shown={percent(Math.exp(logprob))} label="probability" />],
              ["log-probability", <Exact value={logprob} shown={fixed(logprob, 4)} label="log-probability" />],
              ["surprisal", <Exact value={bitsOf(logprob)} shown={`${fixed(bitsOf(logprob), 2)} bits`} label="surprisal" />],
              ["rank", rank >= 0 ? String(rank + 1) : `beyond ${top.length}`],
              ["place, id", `${index}, ${token.id ?? "–"}`],
            ]}
          />
          <ol class="alternatives" aria-label="Most likely tokens at this place">
            {top.map((one) => {
              const chosen = isChosen(one);
              const p = Math.exp(one.logprob);
              const inner = (
                <>
                  <code>{visible(one.token)}</code>
                  <Bar share={p} kind={chosen ? "chosen" : ""} />
                  <span class="figure">{percent(p)}</span>
                </>
              );
              return (
                <li key={`${one.token} ${one.token_id}`} class={chosen ? "is-chosen" : ""}>
                  {onContinue && !chosen ? (
                    <button type="button" class="alternative" title={`${one.logprob}\nContinue from here with ${visible(one.token)}`} onClick={() => onContinue(one)}>
                      <span class="sr">Continue from here with </span>
                      {inner}
                      <span class="go" aria-hidden="true">↳</span>
                    </button>
                  ) : (
                    <div class="alternative" title={String(one.logprob)}>
                      {inner}
                      {chosen && <span class="go" title="this token">●<span class="sr"> this token</span></span>}
                    </div>
                  )}
                </li>
              );
            })}
            {rest > 0 && (
              <li>
                <div class="alternative rest">
                  <span>everything else</span>
                  <Bar share={rest} kind="faint" />
                  <span class="figure">{percent(rest)}</span>
                </div>
              </li>
            )}
          </ol>
          {onContinue ? <p class="hint">Choose another token to continue from here with it.</p> : why && <p class="hint">{why}</p>}
        </>
      )}
    </section>
  );
}
