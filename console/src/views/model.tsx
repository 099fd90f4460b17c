// What runs here: everything that can change a bit, and what it runs on.
import { useEffect, useState } from "preact/hooks";
import { type Schemas, get, isAbort, messageOf } from "../api/client";
import { bytes, count, fixed, percent, short } from "../ui/format";
import { Bar, Busy, Copy, Facts, Failure } from "../ui/parts";

export function ModelView({ active }: { active: boolean }) {
  const [about, setAbout] = useState<Schemas["About"] | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [tries, setTries] = useState(0);

  useEffect(() => {
    if (!active) return;
    const control = new AbortController();
    get<Schemas["About"]>("/v1/about", control.signal).then(
      (about) => { setAbout(about); setError(null); },
      (thrown: unknown) => { if (!isAbort(thrown)) setError(messageOf(thrown)); },
    );
    return () => control.abort();
  }, [active, tries]);

  if (error) return <Failure message={error} retry={() => setTries(tries + 1)} />;
  if (!about) return <Busy text="Reading" />;
  const { model, kv_cache, device } = about;
  const parameters = model.weights.reduce((sum, one) => sum + one.num_elements, 0);
  const size = model.weights.reduce((sum, one) => sum + one.num_bytes, 0);
  const kvTokens = kv_cache.block_tokens * kv_cache.num_blocks;
  return (
    <div class="model">
      <header class="model-head">
        <h2>{model.name}</h2>
        <p class="fingerprint"><span>fingerprint</span> <Copy text={about.system_fingerprint} label="fingerprint" /></p>
        <p class="hint">Weights, tokenizer, template, numerics and every setting that can change a bit, in one hash. Two servers with the same fingerprint give the same bits.</p>
      </header>
      <dl class="figures">
        <div><dt>parameters</dt><dd title={String(parameters)}>{short(parameters)}</dd></div>
        <div><dt>context</dt><dd>{count(model.max_model_len)} tokens</dd></div>
        <div><dt>weights</dt><dd>{model.weights[0]?.format ?? "–"}</dd></div>
        <div><dt>bits a weight</dt><dd>{parameters > 0 ? fixed((8 * size) / parameters, 2) : "–"}</dd></div>
        <div><dt>profile</dt><dd>{about.profile}</dd></div>
      </dl>
      <div class="sheets">
        <section><h3>Quantisation</h3>
          <table>
            <thead><tr><th scope="col">format</th><th scope="col">tensors</th><th scope="col">weights</th><th scope="col">bytes</th><th scope="col">share</th></tr></thead>
            <tbody>{model.weights.map((one) => (
              <tr key={one.format}><td><code>{one.format}</code></td><td class="figure">{one.num_tensors}</td><td class="figure" title={String(one.num_elements)}>{short(one.num_elements)}</td><td class="figure" title={String(one.num_bytes)}>{bytes(one.num_bytes)}</td><td class="share"><Bar share={one.num_bytes / size} kind="plain" /> {percent(one.num_bytes / size)}</td></tr>
            ))}</tbody>
          </table>
        </section>
        <section><h3>Shape</h3><Facts rows={[
          ["architecture", model.architecture], ["layers", String(model.num_layers)], ["hidden size", count(model.hidden_size)], ["feed-forward", count(model.intermediate_size)],
          ["heads", `${model.num_attention_heads}, ${model.num_key_value_heads} for keys and values`], ["head size", String(model.head_dim)], ["window", model.sliding_window ? `${count(model.sliding_window)} tokens` : "none"],
          ["vocabulary", count(model.vocab_size)], ["made for", `${count(model.trained_context)} tokens`],
        ]} /></section>
        <section><h3>Loaded</h3><Facts rows={[
          ["device", device.name], ["instruction set", device.isa], ["threads", String(device.num_threads)], ["sequences at once", String(device.max_num_seqs)],
          ["keys and values", `${kv_cache.element}, ${count(kvTokens)} tokens, ${bytes(kv_cache.block_bytes * kv_cache.num_blocks)}`], ["prefix cache", device.prefix_cache ? "on" : "off"],
          ["speculation", model.draft_model ? `${device.speculation}, draft model ${model.draft_model}` : device.speculation], ["since", new Date(about.created * 1000).toLocaleString()],
        ]} /></section>
        <section><h3>Identity</h3><Facts rows={[
          ["served as", <Copy text={model.id} label="name" />], ["also", model.aliases.join(", ") || "–"], ["file SHA-256", <Copy text={model.sha256} label="file hash" />], ["tokenizer", <Copy text={model.tokenizer_sha256} label="tokenizer hash" />],
          ["chat template", model.template_sha256 ? <Copy text={model.template_sha256} label="template hash" /> : "none"], ["template date", about.template_date], ["numerics", about.numerics], ["prompt format", about.prompt_format],
          ["receipts", about.receipts ? "on every reply" : "on request"], ["ledger", about.ledger ? "kept" : "off"], ["version", about.assay_version],
        ]} /></section>
      </div>
    </div>
  );
}
