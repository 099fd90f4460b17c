// A conversation whose every token shows how likely it was, and may be taken back for another.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Schemas } from "../api/client";
import { fixed, percent } from "../ui/format";
import { type Alternative, Inspector } from "../ui/inspector";
import { Copy, Empty, Exact, Failure, Field, Text, announce } from "../ui/parts";
import { Legend, TokenText } from "../ui/tokens";
import { type Reply, type Settings, answer, branch, ended, goOn, newReply, replyText } from "./chat-reply";

interface Turn {
  question: string;
  /** What was answered, every branch of it. */
  replies: Reply[];
  shown: number;
}

interface Place {
  turn: number;
  token: number;
}

const EXAMPLES = ["What is the capital of France? Answer in one short sentence.", "Is a whale a fish? Answer yes or no.", "Name three rivers of Africa."];

export function Chat() {
  const [system, setSystem] = useState("");
  const [question, setQuestion] = useState("");
  const [turns, setTurns] = useState<Turn[]>([]);
  const [place, setPlace] = useState<Place | null>(null);
  const [settings, setSettings] = useState<Settings>({ temperature: 0, topP: 1, maxTokens: 256, seed: "" });
  const running = useRef<AbortController | null>(null);
  const end = useRef<HTMLDivElement>(null);
  const last = turns.at(-1);
  const isRunning = turns.some((turn) => turn.replies.some((reply) => reply.finish === null));

  const length = last?.replies[last.shown]?.tokens.length ?? 0;
  // Whoever has scrolled up to read is left there.
  const isAtEnd = document.documentElement.scrollHeight - innerHeight - scrollY < 120;
  useEffect(() => {
    if (isAtEnd) end.current?.scrollIntoView({ block: "nearest" });
  }, [length]);
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [turns.length]);

  const changeReply = (turn: number, at: number) => (change: (reply: Reply) => Reply) =>
    setTurns((turns) => turns.map((one, index) => (index === turn ? { ...one, replies: one.replies.map((reply, r) => (r === at ? change(reply) : reply)) } : one)));

  const start = async (turn: number, at: number, run: (change: ReturnType<typeof changeReply>, signal: AbortSignal) => Promise<void>) => {
    const control = new AbortController();
    running.current = control;
    await run(changeReply(turn, at), control.signal);
    if (running.current === control) running.current = null;
    announce("The reply is complete");
  };

  /** The conversation up to and with the question of `turn`. */
  const messagesTo = (turns: Turn[], turn: number): Schemas["ChatMessage"][] => {
    const said = turns.slice(0, turn).flatMap((one): Schemas["ChatMessage"][] => {
      const reply = one.replies[one.shown];
      return [{ role: "user", content: one.question }, { role: "assistant", content: reply ? replyText(reply) : "" }];
    });
    const before: Schemas["ChatMessage"][] = system.trim() === "" ? [] : [{ role: "system", content: system }];
    return [...before, ...said, { role: "user", content: turns[turn]?.question ?? "" }];
  };

  const ask = (text: string) => {
    if (text.trim() === "" || isRunning) return;
    const next = [...turns, { question: text, replies: [newReply()], shown: 0 }];
    setTurns(next);
    setQuestion("");
    setPlace(null);
    void start(next.length - 1, 0, (change, signal) => answer(messagesTo(next, next.length - 1), settings, change, signal));
  };

  const again = (turn: number) => {
    const one = turns[turn];
    if (!one || isRunning) return;
    const at = one.replies.length;
    setTurns(turns.map((other, index) => (index === turn ? { ...other, replies: [...other.replies, newReply()], shown: at } : other)));
    setPlace(null);
    void start(turn, at, (change, signal) => answer(messagesTo(turns, turn), settings, change, signal));
  };

  /** A new branch with `alternative` in the selected token's place; what followed the turn is of another branch. */
  const continueWith = (turn: number, index: number, alternative: Alternative) => {
    const one = turns[turn];
    const from = one?.replies[one.shown];
    if (!one || !from) return;
    const isEnd = from.end !== null && alternative.token_id === from.end.id;
    const begun = isEnd ? ended(from, index) : branch(from, index, alternative);
    const at = one.replies.length;
    setTurns([...turns.slice(0, turn), { ...one, replies: [...one.replies, begun], shown: at }]);
    setPlace(isEnd ? null : { turn, token: index });
    if (!isEnd) void start(turn, at, (change, signal) => goOn(begun, settings, change, signal));
  };

  const show = (turn: number, shown: number) => {
    setTurns(turns.map((one, index) => (index === turn ? { ...one, shown } : one)));
    setPlace(null);
  };

  const selectedReply = place ? turns[place.turn]?.replies[turns[place.turn]!.shown] : undefined;
  const selected = place ? selectedReply?.tokens[place.token] : undefined;
  const why = !selectedReply ? undefined
    : isRunning ? "Once the reply is complete, you can continue from here with another token."
    : selectedReply.reasoning.length > 0 ? "Behind reasoning a reply cannot be continued here: the marks between both are not among its tokens."
    : place?.turn !== turns.length - 1 ? "Only the last reply can be continued."
    : undefined;

  return (
    <div class={`chat split${selected ? " has-side" : ""}`}>
      <div class="conversation">
        {turns.length === 0 && (
          <Empty title="Ask the model something">
            <p>Every token of the reply is tinted by how surprising it was. Select one to see what else could have stood there, and continue from there with another.</p>
            <p>Temperature is 0 until you set it: the likeliest token is taken at every place.</p>
            <div class="examples">{EXAMPLES.map((example) => <button type="button" key={example} class="quiet" onClick={() => ask(example)}>{example}</button>)}</div>
          </Empty>
        )}
        {turns.map((turn, index) => (
          <article key={index} class="turn">
            <p class="question"><span class="sr">You: </span>{turn.question}</p>
            <ReplyView
              turn={turn}
              selected={place?.turn === index ? place.token : null}
              onSelect={(token) => setPlace(token === null ? null : { turn: index, token })}
              onShow={(shown) => show(index, shown)}
              onAgain={index === turns.length - 1 && !isRunning ? () => again(index) : undefined}
            />
          </article>
        ))}
        <div ref={end} />
        <form class="composer" onSubmit={(event) => { event.preventDefault(); ask(question); }}>
          <Text
            aria-label="Message"
            placeholder="Message"
            rows={1}
            value={question}
            onText={setQuestion}
            most={200}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              ask(question);
            }}
          />
          {isRunning ? (
            <button type="button" class="primary" onClick={() => running.current?.abort()}>Stop</button>
          ) : (
            <button type="submit" class="primary" disabled={question.trim() === ""}>Send</button>
          )}
          <div class="below">
            <details class="settings">
              <summary>Settings<span class="hint">temperature {settings.temperature}, up to {settings.maxTokens} tokens{settings.seed && `, seed ${settings.seed}`}</span></summary>
              <div class="grid">
                <Field label="Temperature"><input type="number" min="0" max="2" step="0.1" value={settings.temperature} onInput={(event) => setSettings({ ...settings, temperature: event.currentTarget.valueAsNumber || 0 })} /></Field>
                <Field label="Top p"><input type="number" min="0.01" max="1" step="0.05" value={settings.topP} onInput={(event) => setSettings({ ...settings, topP: event.currentTarget.valueAsNumber || 1 })} /></Field>
                <Field label="Most tokens"><input type="number" min="1" step="1" value={settings.maxTokens} onInput={(event) => setSettings({ ...settings, maxTokens: event.currentTarget.valueAsNumber || 256 })} /></Field>
                <Field label="Seed"><input type="text" inputMode="numeric" pattern="-?[0-9]*" placeholder="drawn" value={settings.seed} onInput={(event) => setSettings({ ...settings, seed: event.currentTarget.value.replace(/[^-0-9]/g, "") })} /></Field>
              </div>
              <Field label="System message"><Text rows={1} value={system} onText={setSystem} placeholder="None" /></Field>
            </details>
            {turns.length > 0 && <button type="button" class="quiet" onClick={() => { running.current?.abort(); setTurns([]); setPlace(null); }}>New conversation</button>}
            <Legend />
          </div>
        </form>
      </div>
      {selected && place && (
        <aside class="side">
          <Inspector
            token={selected}
            index={place.token}
            onClose={() => setPlace(null)}
            onStep={(by) => setPlace({ ...place, token: Math.max(0, Math.min((selectedReply?.tokens.length ?? 1) - 1, place.token + by)) })}
            {...(why ? { why } : { onContinue: (alternative: Alternative) => continueWith(place.turn, place.token, alternative) })}
          />
        </aside>
      )}
    </div>
  );
}

function ReplyView({ turn, selected, onSelect, onShow, onAgain }: { turn: Turn; selected: number | null; onSelect: (token: number | null) => void; onShow: (shown: number) => void; onAgain: (() => void) | undefined }) {
  const reply = turn.replies[turn.shown];
  if (!reply) return null;
  const drawn = reply.tokens.slice(reply.given);
  const joint = reply.tokens.reduce((sum, token) => sum + (token.logprob ?? 0), 0);
  // From the first token on: reading the prompt is another matter.
  const drawing = reply.endedAt === null || reply.firstAt === null ? 0 : (reply.endedAt - reply.firstAt) / 1000;
  const ends: Record<string, string> = { stop: "ended", length: "cut at the limit", stopped: "stopped by you", error: "failed" };
  return (
    <div class="reply">
      {reply.reasoning.length > 0 && (
        <details class="reasoning"><summary>Reasoning, {reply.reasoning.length} tokens</summary><TokenText tokens={reply.reasoning} label="Reasoning" selected={null} onSelect={() => {}} /></details>
      )}
      {reply.tokens.length === 0 && reply.finish === null && <p class="busy" role="status"><span class="pulse" aria-hidden="true" /> Reading</p>}
      {reply.tokens.length > 0 && <TokenText key={turn.shown} tokens={reply.tokens} label={`Reply, ${reply.tokens.length} tokens; arrows move, Enter selects`} selected={selected} onSelect={onSelect} />}
      {reply.tokens.length === 0 && reply.finish !== null && !reply.error && <p class="hint">No text.</p>}
      {reply.error && <Failure message={reply.error} {...(onAgain ? { retry: onAgain } : {})} />}
      <footer class="meta">
        {turn.replies.length > 1 && (
          <span class="branches">
            <button type="button" class="icon" aria-label="Branch before" disabled={turn.shown === 0} onClick={() => onShow(turn.shown - 1)}>‹</button>
            branch {turn.shown + 1} of {turn.replies.length}
            <button type="button" class="icon" aria-label="Next branch" disabled={turn.shown === turn.replies.length - 1} onClick={() => onShow(turn.shown + 1)}>›</button>
          </span>
        )}
        {reply.tokens.length > 0 && (
          <>
            <span>{reply.tokens.length} tokens</span>
            <span>log-probability <Exact value={joint} shown={fixed(joint)} label="log-probability of the reply" /></span>
            <span>{percent(Math.exp(joint / reply.tokens.length))} a token</span>
          </>
        )}
        {drawing > 0 && drawn.length > 1 && <span>{fixed((drawn.length - 1) / drawing, 0)} tokens/s</span>}
        {reply.finish !== null && <span>{ends[reply.finish] ?? reply.finish}</span>}
        {reply.finish !== null && reply.seed !== null && <span>seed <Copy text={String(reply.seed)} label="seed" /></span>}
        {reply.finish !== null && reply.tokens.length > 0 && <Copy text={replyText(reply)} shown="copy text" label="reply text" />}
        {onAgain && !reply.error && <button type="button" class="link" onClick={onAgain}>ask again</button>}
      </footer>
    </div>
  );
}
