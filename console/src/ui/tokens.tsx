// A text as its tokens, each tinted by its surprisal. One list box however long it is: the arrows move through it, and
// hovering changes nothing but the tip and one class, so that thousands of tokens stay smooth.
import { memo } from "preact/compat";
import { useEffect, useId, useRef } from "preact/hooks";
import type { Schemas } from "../api/client";
import { bitsOf, fixed, percent, tint, visible } from "./format";

export interface Token {
  text: string;
  /** Null where nothing stands before it. */
  logprob: number | null;
  top: Schemas["Alternative"][];
  id: number | null;
  bytes: number[];
  /** What put it here, where it was not drawn. */
  origin?: "chosen" | "kept";
}

export function tokenOf(entry: Schemas["LogprobEntry"]): Token {
  return { text: entry.token, logprob: entry.logprob, top: entry.top_logprobs, id: entry.token_id ?? null, bytes: entry.bytes };
}

/** The text that tokens spell together. */
export function textOf(tokens: Token[]): string {
  return new TextDecoder().decode(Uint8Array.from(tokens.flatMap((token) => token.bytes)));
}

const CHUNK = 64;

interface Props {
  tokens: Token[];
  label: string;
  selected: number | null;
  onSelect: (index: number | null) => void;
  /** Told which token is under the pointer or the keyboard's cursor. */
  onPoint?: (index: number | null) => void;
  /** The token that is pointed at elsewhere. */
  pointed?: number | null;
}

const Chunk = memo(
  function Chunk({ tokens, first, id }: { tokens: Token[]; first: number; id: string }) {
    return (
      <>
        {tokens.map((token, index) => {
          const rare = token.logprob !== null && token.logprob < Math.log(0.1) ? " rare" : "";
          const origin = token.origin ? ` ${token.origin}` : "";
          const shown = token.text.replace(/\n/g, "↵\n") || "·";
          return (
            <span key={first + index} id={`${id}-${first + index}`} data-i={first + index} role="option" aria-selected="false" {...(shown.trim() === "" ? { "aria-label": visible(token.text) } : {})} class={`t h${tint(token.logprob)}${rare}${origin}`}>
              {shown}
            </span>
          );
        })}
      </>
    );
  },
  (before, after) => before.first === after.first && before.tokens.length === after.tokens.length && before.tokens[0] === after.tokens[0] && before.tokens.at(-1) === after.tokens.at(-1),
);

export function said(token: Token): string {
  if (token.logprob === null) return `${visible(token.text)}, first token, no probability`;
  return `${visible(token.text)}, ${percent(Math.exp(token.logprob))}, ${fixed(bitsOf(token.logprob), 2)} bits`;
}

export function TokenText({ tokens, label, selected, onSelect, onPoint, pointed = null }: Props) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const cursor = useRef<number>(-1);
  const marked = useRef<HTMLElement | null>(null);
  const chosen = useRef<HTMLElement | null>(null);

  const element = (index: number) => list.current?.querySelector<HTMLElement>(`[data-i="${index}"]`) ?? null;

  const mark = (target: HTMLElement | null) => {
    if (marked.current === target) return;
    marked.current?.classList.remove("at");
    marked.current = target;
    target?.classList.add("at");
  };

  const showTip = (target: HTMLElement | null) => {
    const box = tip.current;
    if (!box) return;
    const token = target ? tokens[Number(target.dataset.i)] : undefined;
    if (!target || !token) {
      box.hidden = true;
      return;
    }
    box.hidden = false;
    box.textContent = token.logprob === null ? "first token" : `${percent(Math.exp(token.logprob))}   ${fixed(bitsOf(token.logprob), 2)} bits`;
    const place = target.getClientRects()[0] ?? target.getBoundingClientRect();
    const left = Math.max(6, Math.min(place.left, innerWidth - box.offsetWidth - 6));
    const above = place.top - box.offsetHeight - 6;
    box.style.transform = `translate(${left}px, ${above < 6 ? place.bottom + 6 : above}px)`;
  };

  const point = (target: HTMLElement | null) => {
    mark(target);
    showTip(target);
    onPoint?.(target ? Number(target.dataset.i) : null);
  };

  /** Moves the keyboard's cursor. */
  const move = (index: number) => {
    const at = Math.max(0, Math.min(tokens.length - 1, index));
    const target = element(at);
    const token = tokens[at];
    if (!target || !token) return;
    cursor.current = at;
    target.setAttribute("aria-label", said(token));
    list.current?.setAttribute("aria-activedescendant", target.id);
    target.scrollIntoView({ block: "nearest" });
    point(target);
  };

  useEffect(() => {
    chosen.current?.classList.remove("on");
    chosen.current?.setAttribute("aria-selected", "false");
    chosen.current = selected === null ? null : element(selected);
    chosen.current?.classList.add("on");
    chosen.current?.setAttribute("aria-selected", "true");
    const token = selected === null ? undefined : tokens[selected];
    if (token) chosen.current?.setAttribute("aria-label", said(token));
  }, [selected, tokens]);

  useEffect(() => chosen.current?.scrollIntoView({ block: "nearest" }), [selected]);

  useEffect(() => {
    mark(pointed === null ? null : element(pointed));
  }, [pointed]);

  useEffect(() => {
    const hide = () => showTip(null);
    addEventListener("scroll", hide, { passive: true, capture: true });
    return () => removeEventListener("scroll", hide, { capture: true });
  });

  const target = (event: Event) => (event.target as HTMLElement).closest<HTMLElement>("[data-i]");

  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowRight: cursor.current + 1, ArrowLeft: cursor.current - 1, ArrowDown: cursor.current + 10, ArrowUp: cursor.current - 10, Home: 0, End: tokens.length - 1 };
    const to = steps[event.key];
    if (to !== undefined) move(to);
    else if (event.key === "Enter" || event.key === " ") onSelect(cursor.current === selected ? null : cursor.current);
    else if (event.key === "Escape") onSelect(null);
    else return;
    event.preventDefault();
  };

  const chunks = [];
  for (let first = 0; first < tokens.length; first += CHUNK) {
    chunks.push(<Chunk key={first} first={first} id={id} tokens={tokens.slice(first, first + CHUNK)} />);
  }
  return (
    <>
      <div
        ref={list}
        class="tokens"
        role="listbox"
        tabIndex={0}
        aria-label={label}
        onKeyDown={onKeyDown}
        onFocus={() => list.current?.matches(":focus-visible") && move(selected ?? Math.max(0, cursor.current))}
        onBlur={() => point(null)}
        onPointerOver={(event) => event.pointerType === "mouse" && point(target(event))}
        onPointerLeave={() => point(null)}
        onClick={(event) => {
          const at = target(event);
          if (!at) return;
          cursor.current = Number(at.dataset.i);
          onSelect(cursor.current === selected ? null : cursor.current);
        }}
      >
        {chunks}
      </div>
      <div ref={tip} class="tip" hidden aria-hidden="true" />
    </>
  );
}

/** What the tints mean. */
export function Legend() {
  return (
    <div class="legend" aria-label="Tints by probability: none at 100 %, strongest at 0.2 % and less">
      {[1, 0.9, 0.5, 0.2, 0.05, 0.01, 0.002].map((p) => (
        <span key={p} class={`h${tint(Math.log(p))}${p < 0.1 ? " rare" : ""}`}>{p * 100}{p === 1 ? " %" : ""}</span>
      ))}
    </div>
  );
}
