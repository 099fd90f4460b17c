// Replies as they come: over chat completions, or, behind tokens that are given, over text completions.
import { type Schemas, isAbort, messageOf, stream } from "../api/client";
import { type Token, textOf, tokenOf } from "../ui/tokens";

export interface Reply {
  tokens: Token[];
  reasoning: Token[];
  /** What stands before the reply, as tokens; null until the server has told. */
  promptIds: number[] | null;
  /** The token that ended it. */
  end: Token | null;
  /** Why it ended; null while it runs. */
  finish: string | null;
  error: string | null;
  startedAt: number;
  /** When its first token was there. */
  firstAt: number | null;
  endedAt: number | null;
  /** Tokens that were not drawn here, at its beginning. */
  given: number;
  seed: number | null;
  fingerprint: string | null;
}

export interface Settings {
  temperature: number;
  topP: number;
  maxTokens: number;
  seed: string;
}

export const TOP = 10;

export function newReply(tokens: Token[] = [], promptIds: number[] | null = null): Reply {
  return {
    tokens, reasoning: [], promptIds, end: null, finish: null, error: null,
    startedAt: performance.now(), firstAt: null, endedAt: null, given: tokens.length, seed: null, fingerprint: null,
  };
}

export const replyText = (reply: Reply): string => textOf(reply.tokens);

function common({ temperature, topP, maxTokens, seed }: Settings) {
  return {
    temperature, top_p: topP, max_tokens: maxTokens, stream: true, logprobs_end: true, return_token_ids: true,
    ...(seed.trim() === "" ? {} : { seed: Number(seed) }),
  };
}

type Change = (change: (reply: Reply) => Reply) => void;

async function run(change: Change, signal: AbortSignal, read: () => Promise<void>): Promise<void> {
  let error: string | null = null;
  try {
    await read();
  } catch (thrown) {
    if (!isAbort(thrown) && !signal.aborted) error = messageOf(thrown);
  }
  change((reply) => ({ ...reply, error, finish: reply.finish ?? (error ? "error" : "stopped"), endedAt: performance.now() }));
}

/** Answers `messages`. */
export function answer(messages: Schemas["ChatMessage"][], settings: Settings, change: Change, signal: AbortSignal): Promise<void> {
  const body = { messages, ...common(settings), logprobs: true, top_logprobs: TOP };
  return run(change, signal, async () => {
    for await (const chunk of stream<Schemas["ChatChunk"]>("/v1/chat/completions", body, signal)) {
      const choice = chunk.choices[0];
      change((reply) => ({
        ...reply,
        promptIds: choice?.prompt_token_ids ?? reply.promptIds,
        tokens: [...reply.tokens, ...(choice?.logprobs?.content ?? []).map(tokenOf)],
        reasoning: [...reply.reasoning, ...(choice?.logprobs?.reasoning_content ?? []).map(tokenOf)],
        end: choice?.logprobs?.end ? tokenOf(choice.logprobs.end) : reply.end,
        finish: choice?.finish_reason ?? reply.finish,
        seed: chunk.seed ?? reply.seed,
        fingerprint: chunk.system_fingerprint,
        firstAt: reply.firstAt ?? (choice?.logprobs ? performance.now() : null),
      }));
    }
  });
}

/** Goes on behind the tokens that `begun` has. */
export function goOn(begun: Reply, settings: Settings, change: Change, signal: AbortSignal): Promise<void> {
  const prompt = [...(begun.promptIds ?? []), ...begun.tokens.map((token) => token.id ?? 0)];
  const body = { prompt, ...common(settings), logprobs: TOP, logprobs_content: true };
  return run(change, signal, async () => {
    for await (const chunk of stream<Schemas["TextCompletion"]>("/v1/completions", body, signal)) {
      const choice = chunk.choices[0];
      const entries = (choice?.logprobs?.content ?? []).filter((entry) => entry !== null);
      change((reply) => ({
        ...reply,
        tokens: [...reply.tokens, ...entries.map(tokenOf)],
        end: choice?.logprobs?.end ? tokenOf(choice.logprobs.end) : reply.end,
        finish: choice?.finish_reason ?? reply.finish,
        seed: chunk.seed ?? reply.seed,
        fingerprint: chunk.system_fingerprint,
        firstAt: reply.firstAt ?? (choice?.logprobs ? performance.now() : null),
      }));
    }
  });
}

/** The beginning of `reply` with `alternative` in place of its token `index`. */
export function branch(reply: Reply, index: number, alternative: Schemas["Alternative"]): Reply {
  const replaced = reply.tokens[index];
  const kept = reply.tokens.slice(0, index).map((token): Token => ({ ...token, origin: "kept" }));
  const chosen: Token = {
    text: new TextDecoder().decode(Uint8Array.from(alternative.bytes)), bytes: alternative.bytes,
    logprob: alternative.logprob, id: alternative.token_id ?? null, top: replaced?.top ?? [], origin: "chosen",
  };
  return newReply([...kept, chosen], reply.promptIds);
}

/** The end that `reply` comes to where its next token is the one that ends replies. */
export function ended(reply: Reply, index: number): Reply {
  const kept = reply.tokens.slice(0, index).map((token): Token => ({ ...token, origin: "kept" }));
  return { ...newReply(kept, reply.promptIds), finish: "stop", endedAt: performance.now() };
}
