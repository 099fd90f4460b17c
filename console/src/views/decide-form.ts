// What is asked, and how the answers of both routes are read.
import { type Schemas, post } from "../api/client";
import { fixed } from "../ui/format";
import type { Answered } from "./distribution";

export type Kind = "choice" | "predicate" | "score";
export type Mode = "labels" | "schema";

export interface Form {
  mode: Mode;
  state: string;
  question: string;
  kind: Kind;
  labels: string;
  schema: string;
  readout: "label" | "code";
  rotations: number;
  prior: boolean;
  minMass: string;
}

export interface Decided {
  answers: Answered[];
  receipt: Record<string, unknown> | null;
  /** Of a schema: the whole answer. */
  whole: { value: unknown; probability: number; unexplored: number; instances: Schemas["Instance"][]; refusal: string | null } | null;
  usage: Schemas["DecisionUsage"];
  milliseconds: number;
}

/** The labels, one a line; behind a tab or ` | ` stands what a label means. */
export function labelsOf(text: string): { label: string; description: string | null }[] {
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return lines.map((line) => {
    const [label = "", ...description] = line.split(/\t| \| /);
    return { label: label.trim(), description: description.join(" ").trim() || null };
  });
}

function settingsOf(form: Form) {
  return {
    diagnostics: true,
    receipt: true,
    ...(form.readout === "code" ? { readout: "code" } : {}),
    ...(form.rotations > 1 ? { debias: { rotations: form.rotations } } : {}),
    ...(form.prior ? { prior: "content_free" } : {}),
    ...(form.minMass.trim() === "" ? {} : { min_label_mass: Number(form.minMass) }),
  };
}

function question(form: Form) {
  const labels = labelsOf(form.labels);
  const described = labels.map(({ label, description }) => ({ label, ...(description ? { description } : {}) }));
  const base = { type: form.kind, instructions: form.question };
  if (form.kind === "predicate") return base;
  if (form.kind === "score") return { ...base, levels: described };
  return { ...base, choices: described.map(({ label, ...rest }) => ({ value: label, ...rest })) };
}

const named = (value: unknown): string => (typeof value === "string" ? value : value === null ? "none" : JSON.stringify(value));

function ofAnswer(title: string, answer: Schemas["DecisionAnswer"]): Answered {
  const raw = answer.raw_probabilities ?? null;
  const base = { title, labelMass: answer.label_mass, boundary: answer.boundary, diagnostics: answer.diagnostics ?? null, refused: answer.type === "refusal", facts: [] as Answered["facts"], confidence: null };
  switch (answer.type) {
    case "refusal":
      return { ...base, answer: "refused", options: [] };
    case "predicate": {
      const yes = answer.probability;
      const pairs: [string, number][] = [["Yes", yes], ["No", 1 - yes]];
      return { ...base, answer: yes >= 0.5 ? "Yes" : "No", options: pairs.map(([label, probability], index) => ({ label, probability, raw: raw?.[index] ?? null })) };
    }
    case "choice":
      return { ...base, answer: named(answer.choice), confidence: answer.confidence, options: answer.probabilities.map(({ value, probability }, index) => ({ label: named(value), probability, raw: raw?.[index] ?? null })) };
    case "score":
      return { ...base, answer: fixed(answer.score, 2), confidence: answer.confidence, facts: [["score", answer.score, fixed(answer.score)]], options: answer.probabilities.map(({ value, label, probability }, index) => ({ label: `${value} ${label}`, probability, raw: raw?.[index] ?? null })) };
  }
}

function ofField(field: Schemas["DecidedField"]): Answered {
  const raw = field.raw_probabilities ?? null;
  const summary = field.summary;
  return {
    title: field.path === "" ? "answer" : field.path,
    answer: named(field.value),
    options: field.distribution.map(({ value, probability }, index) => ({ label: named(value), probability, raw: raw?.[index] ?? null })),
    labelMass: field.label_mass,
    confidence: field.confidence,
    facts: summary ? [["mean", summary.mean, fixed(summary.mean, 2)], ["median", Number(summary.median), named(summary.median)]] : [],
    boundary: field.boundary,
    diagnostics: field.diagnostics ?? null,
    refused: false,
  };
}

export async function decide(form: Form, signal: AbortSignal): Promise<Decided> {
  const begun = performance.now();
  if (form.mode === "labels") {
    const body = { input: form.state, questions: [question(form)], ...settingsOf(form) };
    const reply = await post<Schemas["Decision"]>("/v1/decisions", body, signal);
    return {
      answers: reply.answers.map((answer) => ofAnswer(form.question || "Answer", answer)),
      receipt: (reply.receipt as Record<string, unknown> | undefined) ?? null,
      whole: null,
      usage: reply.usage,
      milliseconds: performance.now() - begun,
    };
  }
  const schema: unknown = JSON.parse(form.schema);
  const body = { state: form.state, schema, ...(form.question ? { instructions: form.question } : {}), ...settingsOf(form) };
  const reply = await post<Schemas["Decided"]>("/v1/decide", body, signal);
  return {
    answers: reply.fields.map(ofField),
    receipt: (reply.receipt as Record<string, unknown> | undefined) ?? null,
    whole: { value: reply.answer, probability: reply.probability, unexplored: reply.unexplored_mass, instances: reply.instances, refusal: reply.refusal ?? null },
    usage: reply.usage,
    milliseconds: performance.now() - begun,
  };
}
