// Typed questions: a distribution over given answers, read from the model while one types.
import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort, messageOf } from "../api/client";
import { fixed, percent } from "../ui/format";
import { Busy, Choice, Copy, Empty, Exact, Failure, Field, Text, announce } from "../ui/parts";
import { type Decided, type Form, type Kind, type Mode, decide, labelsOf } from "./decide-form";
import { Distribution } from "./distribution";
import { ReceiptPart } from "./receipt";

const SCHEMA = {
  type: "object",
  properties: {
    sentiment: { enum: ["Positive", "Neutral", "Negative"], description: "What is the sentiment of this review?" },
    stars: { type: "integer", minimum: 1, maximum: 5, description: "How many stars does the review give?" },
    again: { type: "boolean", description: "Would the guest come again?" },
  },
};

const FIRST: Form = {
  mode: "labels",
  state: "The room was spotless and the staff could not have been kinder.",
  question: "What is the sentiment of this review?",
  kind: "choice",
  labels: "Positive\nNeutral\nNegative",
  schema: JSON.stringify(SCHEMA, null, 2),
  readout: "label",
  rotations: 1,
  prior: false,
  minMass: "",
};

const TYPING_MS = 350;

/** Why the form cannot be asked, if it cannot. */
function fault(form: Form): string | null {
  if (form.mode === "schema") {
    try {
      JSON.parse(form.schema);
      return null;
    } catch (error) {
      return `The schema is not JSON: ${messageOf(error)}`;
    }
  }
  const least = labelsOf(form.labels).length;
  return form.kind !== "predicate" && least < 2 ? "At least two labels are needed, one on each line." : null;
}

export function Decide() {
  const [form, setForm] = useState<Form>(FIRST);
  const [live, setLive] = useState(false);
  const [decided, setDecided] = useState<Decided | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const running = useRef<AbortController | null>(null);
  const isFirst = useRef(true);
  const wrong = fault(form);
  const set = (change: Partial<Form>) => setForm((form) => ({ ...form, ...change }));

  const ask = async () => {
    running.current?.abort();
    if (fault(form)) {
      setBusy(false);
      return;
    }
    const control = new AbortController();
    running.current = control;
    setBusy(true);
    try {
      const reply = await decide(form, control.signal);
      setDecided(reply);
      announce(reply.answers.map(({ title, answer }) => `${title}: ${answer}`).join("; "));
      setError(null);
    } catch (thrown) {
      if (isAbort(thrown)) return;
      setError(messageOf(thrown));
    }
    if (running.current === control) setBusy(false);
  };

  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    if (!live) return;
    const timer = setTimeout(ask, TYPING_MS);
    return () => clearTimeout(timer);
  }, [form, live]);

  return (
    <div class="decide two">
      <form class="panel" onSubmit={(event) => { event.preventDefault(); void ask(); }}>
        <Choice<Mode> label="What answers are" value={form.mode} onChange={(mode) => set({ mode })} options={[["labels", "Labels"], ["schema", "JSON Schema"]]} />
        <Field label="State" hint="What the question is about."><Text rows={3} value={form.state} onText={(state) => set({ state })} /></Field>
        <Field label={form.mode === "labels" ? "Question" : "Instructions"}><Text rows={1} value={form.question} onText={(question) => set({ question })} /></Field>
        {form.mode === "labels" ? (
          <>
            <Choice<Kind> label="Kind" value={form.kind} onChange={(kind) => set({ kind })} options={[["choice", "choice"], ["predicate", "yes or no"], ["score", "score"]]} />
            {form.kind !== "predicate" && (
              <Field label={form.kind === "score" ? "Levels, lowest first" : "Labels"} hint="One on each line; behind “ | ” stands what it means.">
                <Text rows={3} value={form.labels} onText={(labels) => set({ labels })} spellcheck={false} />
              </Field>
            )}
          </>
        ) : (
          <Field label="Schema" hint="Honoured in full, or refused by keyword and path."><Text class="code" rows={8} value={form.schema} onText={(schema) => set({ schema })} most={420} spellcheck={false} /></Field>
        )}
        <details class="settings">
          <summary>Readout and debiasing</summary>
          <div class="grid">
            <Field label="Readout"><select value={form.readout} onChange={(event) => set({ readout: event.currentTarget.value as Form["readout"] })}><option value="label">label: the words</option><option value="code">code: A, B, C</option></select></Field>
            <Field label="Orders"><input type="number" min="1" max="255" value={form.rotations} onInput={(event) => set({ rotations: event.currentTarget.valueAsNumber || 1 })} /></Field>
            <Field label="Least label mass"><input type="text" inputMode="decimal" placeholder="none" value={form.minMass} onInput={(event) => set({ minMass: event.currentTarget.value })} /></Field>
            <label class="check"><input type="checkbox" checked={form.prior} onChange={(event) => set({ prior: event.currentTarget.checked })} /> divide by the content-free prior</label>
          </div>
        </details>
        <div class="row">
          <button type="submit" class="primary" disabled={wrong !== null}>Decide</button>
          <label class="check"><input type="checkbox" checked={live} onChange={(event) => setLive(event.currentTarget.checked)} /> live, while you type</label>
        </div>
        {wrong && <p class="wrong" role="status">{wrong}</p>}
      </form>
      <div class="results" aria-busy={busy}>
        {error && <Failure message={error} />}
        {!decided && !error && (busy ? <Busy text="Reading the labels" /> : (
          <Empty title="No answer yet"><p>A decision reads the probability of each answer from the model. Nothing is sampled and no text is parsed.</p></Empty>
        ))}
        {decided?.whole && <Whole whole={decided.whole} />}
        {decided?.answers.map((answer, index) => <Distribution key={`${index} ${answer.title}`} of={answer} />)}
        {decided && (
          <p class="meta">
            <span>{fixed(decided.milliseconds, 0)} ms</span>
            <span>{decided.usage.input_tokens} tokens read, {decided.usage.input_tokens_details.cached_tokens} from the cache</span>
            <span>{decided.usage.output_tokens} label tokens</span>
          </p>
        )}
        <ReceiptPart key={decided ? String(decided.receipt?.receipt_sha256) : ""} receipt={decided?.receipt ?? null} />
      </div>
    </div>
  );
}

function Whole({ whole }: { whole: NonNullable<Decided["whole"]> }) {
  const text = JSON.stringify(whole.value, null, 2);
  return (
    <section class="answer whole" aria-label="The most likely instance">
      <header>
        <h3>Most likely instance</h3>
        <p class="result">joint probability <Exact value={whole.probability} shown={percent(whole.probability)} label="joint probability" /></p>
      </header>
      {whole.refusal !== null ? <p class="refused">refused at {whole.refusal}</p> : <Copy text={text} shown={<code>{text}</code>} label="instance" />}
      {whole.instances.length > 1 && (
        <details>
          <summary>{whole.instances.length} likeliest instances, {percent(whole.unexplored)} not followed</summary>
          <ul class="instances">{whole.instances.map((one) => <li key={JSON.stringify(one.value)}><code>{JSON.stringify(one.value)}</code> <Exact value={one.probability} shown={percent(one.probability)} label="probability" /></li>)}</ul>
        </details>
      )}
    </section>
  );
}
