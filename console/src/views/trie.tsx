// The labels' token tree: what every step costs, given the steps before it.
import type { ComponentChildren } from "preact";
import type { Schemas } from "../api/client";
import { fixed, percent, visible } from "../ui/format";
import { Exact } from "../ui/parts";

interface Node {
  token: string;
  logprob: number;
  children: Map<number, Node>;
  /** The labels that end here, with their ends' log-probabilities. */
  ends: { label: string; end: number; joint: number }[];
}

function grow(labels: Schemas["LabelPath"][]): Node {
  const root: Node = { token: "", logprob: 0, children: new Map(), ends: [] };
  for (const { label, token_ids, tokens, logprobs, logprob } of labels) {
    let node = root;
    token_ids.forEach((id, index) => {
      const known = node.children.get(id);
      const next = known ?? { token: tokens[index] ?? "", logprob: logprobs[index] ?? 0, children: new Map(), ends: [] };
      if (!known) node.children.set(id, next);
      node = next;
    });
    node.ends.push({ label, end: logprobs.at(-1) ?? 0, joint: logprob });
  }
  return root;
}

function Step({ text, logprob, kind = "" }: { text: string; logprob: number; kind?: string }) {
  return (
    <span class={`step ${kind}`}>
      <code>{text}</code>
      <span class="figure">{percent(Math.exp(logprob))}</span>
      <Exact value={logprob} shown={fixed(logprob, 3)} label={`log-probability of ${text}`} />
    </span>
  );
}

/** Steps that nothing parts from stand in one line. */
function Branch({ node }: { node: Node }) {
  const line: ComponentChildren[] = [];
  let at = node;
  for (;;) {
    line.push(<Step key={line.length} text={visible(at.token)} logprob={at.logprob} />);
    const [only] = at.children.values();
    if (at.children.size !== 1 || at.ends.length > 0 || !only) break;
    at = only;
  }
  const [end] = at.ends;
  const isLeaf = at.children.size === 0 && at.ends.length === 1 && end;
  return (
    <li>
      <div class="steps-line">
        {line}
        {isLeaf && <End {...end} />}
      </div>
      {!isLeaf && (
        <ul>
          {at.ends.map((one) => <li key={one.label}><div class="steps-line"><End {...one} /></div></li>)}
          <Children of={at} />
        </ul>
      )}
    </li>
  );
}

function End({ label, end, joint }: { label: string; end: number; joint: number }) {
  return (
    <>
      <Step text="end" logprob={end} kind="end" />
      <span class="joint">= <strong>{label}</strong> <span class="figure">{percent(Math.exp(joint))}</span> <Exact value={joint} shown={fixed(joint, 3)} label={`log-probability of ${label}`} /></span>
    </>
  );
}

function Children({ of }: { of: Node }) {
  const nodes = [...of.children.entries()].sort(([, a], [, b]) => b.logprob - a.logprob);
  return <>{nodes.map(([id, node]) => <Branch key={id} node={node} />)}</>;
}

export function Trie({ labels }: { labels: Schemas["LabelPath"][] }) {
  return <div class="trie" role="group" aria-label="Token tree of the labels" tabIndex={0}><ul><Children of={grow(labels)} /></ul></div>;
}
