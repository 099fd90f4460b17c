// A receipt: kept as a file, and computed again by the server.
import { useRef, useState } from "preact/hooks";
import { type Schemas, messageOf, post } from "../api/client";
import { count } from "../ui/format";
import { Busy, Copy, Failure } from "../ui/parts";

type Verdict = Schemas["ReplayVerdict"];
type Receipt = Record<string, unknown>;

function hashOf(receipt: Receipt): string {
  return typeof receipt.receipt_sha256 === "string" ? receipt.receipt_sha256 : "";
}

function save(receipt: Receipt): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(receipt, null, 2)], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `receipt-${hashOf(receipt).slice(0, 12)}.json`;
  link.click();
  URL.revokeObjectURL(url);
}

/** The receipt in a file: itself, or a reply that holds it. */
function inFile(text: string): Receipt {
  const read: unknown = JSON.parse(text);
  const holder = read as { receipt?: Receipt; x_receipt?: Receipt } & Receipt;
  return holder.receipt ?? holder.x_receipt ?? holder;
}

export function ReceiptPart({ receipt }: { receipt: Receipt | null }) {
  const [verdict, setVerdict] = useState<{ of: Receipt; verdict: Verdict } | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const file = useRef<HTMLInputElement>(null);

  const replay = async (receipt: Receipt) => {
    setBusy(true);
    setError(null);
    setVerdict(null);
    try {
      setVerdict({ of: receipt, verdict: await post<Verdict>("/v1/replay", { receipt }) });
    } catch (thrown) {
      setError(messageOf(thrown));
    }
    setBusy(false);
  };

  const open = async () => {
    const chosen = file.current?.files?.[0];
    if (!chosen) return;
    try {
      await replay(inFile(await chosen.text()));
    } catch (thrown) {
      setError(`${chosen.name} is no receipt: ${messageOf(thrown)}`);
    }
    if (file.current) file.current.value = "";
  };

  return (
    <section class="receipt" aria-label="Receipt">
      <h3>Receipt</h3>
      <p class="hint">A sealed record of every token and bit of this answer. Whoever has the model’s file can compute it again.</p>
      <div class="row">
        {receipt && <button type="button" onClick={() => save(receipt)}>Download</button>}
        {receipt && <button type="button" onClick={() => replay(receipt)} disabled={busy}>Replay</button>}
        <button type="button" class="quiet" onClick={() => file.current?.click()} disabled={busy}>Replay a file…</button>
        <input ref={file} type="file" accept=".json,application/json" hidden aria-label="Receipt file" onChange={open} />
      </div>
      {receipt && <p class="hash"><Copy text={hashOf(receipt)} label="receipt hash" /></p>}
      {busy && <Busy text="Computing it again" />}
      {error && <Failure message={error} />}
      {verdict && <VerdictPart {...verdict} />}
    </section>
  );
}

function VerdictPart({ of, verdict }: { of: Receipt; verdict: Verdict }) {
  const name = hashOf(of).slice(0, 12);
  if (verdict.result === "identical") {
    return (
      <p class="verdict same" role="status">
        <strong>Identical.</strong> {count(verdict.values)} values, {count(verdict.drawn)} drawn tokens and {count(verdict.distributions)} distributions of {name} came out the same, to the bit.
      </p>
    );
  }
  return (
    <div class="verdict other" role="alert">
      <strong>{verdict.result === "different" ? "Different." : "Broken."}</strong> <code>{verdict.place}</code>
      {verdict.result === "different" ? <p>recorded <code>{verdict.recorded}</code>, found <code>{verdict.found}</code></p> : <p>{verdict.reason}</p>}
    </div>
  );
}
