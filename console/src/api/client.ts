// Calls of the server's public API. Types come from its OpenAPI document (`npm run types`).
import type { components } from "./schema";

export type Schemas = components["schemas"];

/** A reply that is an error, in the server's own words. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly param: string | null = null,
  ) {
    super(message);
  }
}

const KEY = "assay-key";
let askForKey: ((wasWrong: boolean) => Promise<string | null>) | null = null;
let asking: Promise<string | null> | null = null;

/** Says who gets a key from the person where the server wants one; kept until the tab is closed. */
export function onKeyNeeded(ask: (wasWrong: boolean) => Promise<string | null>): void {
  askForKey = ask;
}

/** The key of a browser that keeps nothing. */
let heldKey: string | null = null;

function storedKey(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return heldKey;
  }
}

function storeKey(key: string): void {
  heldKey = key;
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    // It is held until the page is left.
  }
}

async function failure(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as Schemas["ErrorBody"];
    return new ApiError(response.status, error.message, error.param ?? null);
  } catch {
    return new ApiError(response.status, text.slice(0, 500) || `the server answered ${response.status}`);
  }
}

async function send(path: string, init: RequestInit): Promise<Response> {
  for (;;) {
    const key = storedKey();
    const headers = new Headers(init.headers);
    if (key) headers.set("authorization", `Bearer ${key}`);
    let response: Response;
    try {
      response = await fetch(path, { ...init, headers });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new ApiError(0, "the server cannot be reached; is it still running?");
    }
    if (response.status !== 401 || !askForKey) {
      if (!response.ok) throw await failure(response);
      return response;
    }
    // Several calls that need a key at once ask for it once.
    if (storedKey() !== key) continue;
    asking ??= askForKey(key !== null).finally(() => (asking = null));
    const given = await asking;
    if (given === null) throw await failure(response);
    storeKey(given);
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await send(path, signal ? { signal } : {})).json()) as T;
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  return (await send(path, signal ? { signal } : {})).text();
}

function posted(body: unknown, signal?: AbortSignal): RequestInit {
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return signal ? { ...init, signal } : init;
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return (await (await send(path, posted(body, signal))).json()) as T;
}

/** The events of a streamed reply, one by one; a failure after its beginning is thrown. */
export async function* stream<T>(path: string, body: unknown, signal: AbortSignal): AsyncGenerator<T> {
  const response = await send(path, posted(body, signal));
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new ApiError(0, "the reply broke off");
      const events = (rest + value).split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) {
        if (!event.startsWith("data: ")) continue;
        const data = event.slice(6);
        if (data === "[DONE]") return;
        const read = JSON.parse(data) as T | Schemas["ErrorBody"];
        if (typeof read === "object" && read !== null && "error" in read && read.error) {
          throw new ApiError(response.status, read.error.message, read.error.param ?? null);
        }
        yield read as T;
      }
    }
  } finally {
    // A reply that nobody reads any more is not computed any further; one that is through is not touched by this.
    reader.cancel().catch(() => {});
  }
}

/** Whether `error` is only that the person stopped waiting. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

export function messageOf(error: unknown): string {
  if (error instanceof ApiError && error.status > 0) return `${error.message} (${error.status})`;
  return error instanceof Error ? error.message : String(error);
}
