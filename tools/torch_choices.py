#!/usr/bin/env python3
"""Summed log-probabilities of choices by PyTorch's and Transformers' own Llama, in f32 over exactly dequantised weights.

    python3 tools/compare_lm_eval.py --export ITEMS.json
    python3 tools/torch_choices.py ITEMS.json MODEL.gguf SUMS.json        # where torch, transformers and gguf are
    python3 tools/compare_lm_eval.py --direct SUMS.json

Takes a device of CUDA where there is one. Shares no code with the engine, and none with `tools/oracle.py`.
"""

import json
import sys

import gguf
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

# Names in a file and in Transformers; `{}` is the layer's number.
OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def halves(weight, num_heads):
    """Rows as Transformers rotates them, first half with second; a GGUF file pairs neighbours."""
    rows, columns = weight.shape
    pairs = weight.reshape(num_heads, rows // num_heads // 2, 2, columns)
    return pairs.transpose(1, 2).reshape(rows, columns)


def load(path):
    """The model of a GGUF file of the `llama` architecture with tied embeddings."""
    reader = gguf.GGUFReader(path)
    key = lambda name: reader.fields[f"llama.{name}"].contents()
    tensors = {
        t.name.removesuffix(".weight"): torch.from_numpy(gguf.quants.dequantize(t.data, t.tensor_type).copy()).float()
        for t in reader.tensors
    }
    heads, kv_heads = key("attention.head_count"), key("attention.head_count_kv")
    theta = float(key("rope.freq_base"))
    # Transformers 5 has a name of its own for what was `rope_theta`.
    is_new = int(transformers.__version__.partition(".")[0]) >= 5
    rotation = {"rope_parameters": {"rope_type": "default", "rope_theta": theta}} if is_new else {"rope_theta": theta}
    config = LlamaConfig(
        vocab_size=tensors["token_embd"].shape[0],
        hidden_size=key("embedding_length"),
        intermediate_size=key("feed_forward_length"),
        num_hidden_layers=key("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        rms_norm_eps=key("attention.layer_norm_rms_epsilon"),
        max_position_embeddings=key("context_length"),
        tie_word_embeddings="output" not in tensors,
        **rotation,
    )
    model = LlamaForCausalLM(config).float()
    state = {f"{theirs}.weight": tensors[name] for name, theirs in OUTER.items()}
    state["lm_head.weight"] = tensors.get("output", tensors["token_embd"])
    for layer in range(config.num_hidden_layers):
        for name, theirs in LAYER.items():
            weight = tensors[f"blk.{layer}.{name}"]
            if name in ("attn_q", "attn_k"):
                weight = halves(weight, heads if name == "attn_q" else kv_heads)
            state[f"model.layers.{layer}.{theirs}.weight"] = weight
    model.load_state_dict(state, strict=True)
    rotary = next(module for name, module in model.named_modules() if name.endswith("rotary_emb"))
    frequency = rotary.inv_freq.double()
    size = config.hidden_size // heads
    expected = theta ** (-torch.arange(size // 2, dtype=torch.float64) * 2 / size)
    assert torch.allclose(frequency, expected, rtol=1e-6), "the rotations are not the file's"
    return model.eval()


@torch.inference_mode()
def main(items_path, model_path, out_path):
    """Reads the items, writes the sums in the same order."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    model = load(model_path).to(device)
    with open(items_path, encoding="utf-8") as file:
        items = json.load(file)
    sums = {}
    for task, docs in items.items():
        sums[task] = []
        for doc in docs:
            values = []
            for own in doc["choice_ids"]:
                ids = torch.tensor([doc["context_ids"] + own], device=device)
                rows = model(ids).logits[0, -len(own) - 1 : -1].double().log_softmax(-1)
                values.append(rows.gather(1, ids[0, -len(own) :, None]).sum().item())
            sums[task].append(values)
        print(f"{task}: {len(docs)} items on {device}", flush=True)
    with open(out_path, "w", encoding="utf-8") as file:
        json.dump(sums, file)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
