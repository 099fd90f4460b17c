// Small parts that every view is made of.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Says something to screen readers, wherever it happened. */
export function announce(text: string): void {
  const region = document.getElementById("announcer");
  if (region) region.textContent = text;
}

/** A value that is copied whole when it is pressed; one that is long to make is made then. */
export function Copy({ text, shown, label }: { text: string | (() => string); shown?: ComponentChildren; label?: string }) {
  const [copied, setCopied] = useState(false);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    if (!(await copyText(typeof text === "string" ? text : text()))) return;
    setCopied(true);
    announce("Copied");
    timer.current = window.setTimeout(() => setCopied(false), 1200);
  };
  const whole = typeof text === "string" ? text : "";
  return (
    <button type="button" class={`copy${copied ? " copied" : ""}`} onClick={copy} title={whole && whole.length < 400 ? `${whole}\nPress to copy` : "Press to copy"} aria-label={`${label ?? ""} ${typeof shown === "string" ? shown : whole}, copy`.trim()}>
      {shown ?? text}
    </button>
  );
}

/** A number, short until it is pressed; then all its digits, which are copied besides. */
export function Exact({ value, shown, label }: { value: number; shown: string; label?: string }) {
  const [open, setOpen] = useState(false);
  const full = String(value);
  const press = async () => {
    setOpen(!open);
    if (!open && (await copyText(full))) announce("Copied");
  };
  return (
    <button type="button" class="exact" onClick={press} aria-expanded={open} title={`${full}\nPress for all digits; they are copied`} aria-label={`${label ? `${label} ` : ""}${shown}; exactly ${full}`}>
      {open ? full.replace("-", "−") : shown}
    </button>
  );
}

export function Failure({ message, retry }: { message: string; retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <span class="failure-sign" aria-hidden="true">!</span>
      <p>{message}</p>
      {retry && <button type="button" class="quiet" onClick={retry}>Try again</button>}
    </div>
  );
}

export function Busy({ text }: { text: string }) {
  return (
    <p class="busy" role="status">
      <span class="pulse" aria-hidden="true" /> {text}
    </p>
  );
}

/** What stands where nothing is yet. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Field({ label, hint, children }: { label: string; hint?: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span class="field-label">{label}</span>
      {children}
      {hint && <span class="hint">{hint}</span>}
    </label>
  );
}

/** One of a few, as a row of buttons. */
export function Choice<T extends string>({ label, value, options, onChange }: { label: string; value: T; options: readonly (readonly [T, string])[]; onChange: (value: T) => void }) {
  return (
    <div class="choice" role="radiogroup" aria-label={label}>
      {options.map(([option, name]) => (
        <label key={option} class={option === value ? "on" : ""}>
          <input type="radio" name={label} checked={option === value} onChange={() => onChange(option)} />
          {name}
        </label>
      ))}
    </div>
  );
}

/** A text area that grows with what is in it. */
export function Text(props: Omit<JSX.IntrinsicElements["textarea"], "onInput" | "ref" | "value"> & { value: string; onText: (text: string) => void; most?: number }) {
  const { value, onText, most = 320, ...rest } = props;
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const element = area.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(most, element.scrollHeight + 2)}px`;
  }, [value, most]);
  return <textarea {...rest} ref={area} value={value} onInput={(event) => onText(event.currentTarget.value)} />;
}

/** A number between 0 and 1 as a bar; its meaning stands beside it in words. */
export function Bar({ share, kind = "" }: { share: number; kind?: string }) {
  const bar = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (bar.current) bar.current.style.transform = `scaleX(${Math.max(0, Math.min(1, share))})`;
  }, [share]);
  return (
    <span class={`bar ${kind}`} aria-hidden="true">
      <span ref={bar} />
    </span>
  );
}

export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
