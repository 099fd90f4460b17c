// The console: five views of one server, by the hash of the address. A view that was opened keeps its state.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Schemas, get, onKeyNeeded } from "./api/client";
import { Chat } from "./views/chat";
import { Decide } from "./views/decide";
import { ModelView } from "./views/model";
import { Monitor } from "./views/monitor";
import { Score } from "./views/score";

const VIEWS = [["chat", "Chat"], ["decide", "Decide"], ["score", "Score"], ["monitor", "Monitor"], ["model", "Model"]] as const;
type View = (typeof VIEWS)[number][0];

function viewOf(hash: string): View {
  const name = hash.replace(/^#\/?/, "");
  return VIEWS.find(([view]) => view === name)?.[0] ?? "chat";
}

function Console() {
  const [view, setView] = useState<View>(viewOf(location.hash));
  const [opened, setOpened] = useState<ReadonlySet<View>>(new Set([view]));
  const [model, setModel] = useState<string | null>(null);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  /** How far down each view was left. */
  const scrolled = useRef(new Map<View, number>());

  useEffect(() => {
    const follow = () => {
      const next = viewOf(location.hash);
      setView((view) => {
        scrolled.current.set(view, scrollY);
        return next;
      });
      setOpened((opened) => new Set([...opened, next]));
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);

  useEffect(() => {
    document.title = `${VIEWS.find(([name]) => name === view)?.[1]} – Assay`;
    if (!isFirst.current) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
    scrollTo(0, scrolled.current.get(view) ?? 0);
  }, [view]);

  useEffect(() => {
    get<Schemas["ModelList"]>("/v1/models").then((list) => setModel(list.data[0]?.id ?? null), () => {});
  }, []);

  const part = (name: View, draw: (active: boolean) => preact.JSX.Element) =>
    opened.has(name) && <div key={name} hidden={view !== name} class="view">{draw(view === name)}</div>;

  return (
    <>
      <a class="skip" href={`#${view}`} onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>To the content</a>
      <header class="top">
        <h1><a href="#chat">Assay</a></h1>
        <nav aria-label="Views">
          {VIEWS.map(([name, title]) => <a key={name} href={`#${name}`} aria-current={view === name ? "page" : undefined}>{title}</a>)}
        </nav>
        <p class="served">{model && <a href="#model" title="The served model">{model}</a>}<a href="/docs">API</a></p>
      </header>
      <main ref={main} tabIndex={-1} id="main" aria-label={VIEWS.find(([name]) => name === view)?.[1]}>
        {part("chat", () => <Chat />)}
        {part("decide", () => <Decide />)}
        {part("score", () => <Score />)}
        {part("monitor", (active) => <Monitor active={active} />)}
        {part("model", (active) => <ModelView active={active} />)}
      </main>
      <KeyDialog />
      <div id="announcer" class="sr" role="status" aria-live="polite" />
    </>
  );
}

/** Asks for the server's key when a call was refused for want of one. */
function KeyDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const settle = useRef<((key: string | null) => void) | null>(null);
  const [key, setKey] = useState("");
  const [wasWrong, setWasWrong] = useState(false);

  useEffect(() => {
    onKeyNeeded((wasWrong) => new Promise((resolve) => {
      settle.current = resolve;
      setWasWrong(wasWrong);
      setKey("");
      dialog.current?.showModal();
    }));
  }, []);

  const end = (given: string | null) => {
    settle.current?.(given);
    settle.current = null;
    dialog.current?.close();
  };

  return (
    <dialog ref={dialog} aria-labelledby="key-title" onCancel={() => end(null)}>
      <form onSubmit={(event) => { event.preventDefault(); if (key !== "") end(key); }}>
        <h2 id="key-title">This server needs a key</h2>
        <p class="hint">One of those that it was started with (<code>--api-key</code>). It is kept in this tab until you close it, and sent to this server only.</p>
        {wasWrong && <p class="wrong" role="alert">That key was not accepted.</p>}
        <label class="field"><span class="field-label">Key</span><input type="password" autocomplete="off" value={key} onInput={(event) => setKey(event.currentTarget.value)} /></label>
        <div class="row"><button type="submit" class="primary" disabled={key === ""}>Use it</button><button type="button" class="quiet" onClick={() => end(null)}>Not now</button></div>
      </form>
    </dialog>
  );
}

render(<Console />, document.getElementById("console")!);
