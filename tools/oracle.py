#!/usr/bin/env python3
"""Full-precision reference for the model tests.

Runs an f32 forward pass over exactly dequantised GGUF weights (numpy; norms, rotations and softmax sums in
f64 so that the reference's own rounding is far below what it judges) and records what the Rust tests compare
with. Shares no code with the engine.

    python3 -m venv .venv && .venv/bin/pip install numpy gguf tokenizers
    .venv/bin/python tools/oracle.py check  MODEL.gguf RECORDED.logits.bin
    .venv/bin/python tools/oracle.py record MODEL.gguf PROMPTS.json OUT.bin

`check` compares with logits recorded elsewhere (`i32 n, i32 vocab, n x i32 ids, n x vocab f32`).

`record` reads a JSON list of `{"name", "text", "greedy"}`, where `text` may follow the first `characters` of
`file` (from the repository's root), themselves after `before`. The text is tokenised from the model file's own
vocabulary (chat prompts are written out with their special tokens), then continued greedily by `greedy` tokens. The
output, little-endian:

    magic   8 bytes "ASSAYOR1"
    u32     vocabulary size V
    u32     K, recorded logprobs per position
    u32     number of prompts
    per prompt:
      u32 + bytes   name, UTF-8
      u32           N, tokens (prompt, then greedy continuation)
      u32           P, tokens that belong to the prompt
      N x u32       token ids
      N-1 x f32     logprob of token i+1 after tokens 0..=i
      N-1 times:    K x u32 ids, best first (ties by lower id); K x f32 logprobs
      u32           F, positions recorded as full rows
      F times:      u32 position; V x f32 logprobs

Logprobs are natural, normalised in f64, then rounded to f32.
"""

import heapq
import json
import pathlib
import struct
import sys

import gguf
import numpy as np

TOP_K = 64
# Rows of the head at a time.
HEAD_ROWS = 64
# Prompts whose last position is recorded as a full row, for each file, by name.
FULL_ROWS = {"llama": ("chat-sky", "cjk-chinese", "code-rust", "long"), "gemma3": ("story",)}


class Config:
    """Hyperparameters under their published names."""

    def __init__(self, reader):
        self.reader = reader
        self.arch = self.key("general.architecture")
        a = self.arch
        self.layers = self.key(f"{a}.block_count")
        self.hidden = self.key(f"{a}.embedding_length")
        self.heads = self.key(f"{a}.attention.head_count")
        self.kv_heads = self.key(f"{a}.attention.head_count_kv", self.heads)
        self.head_dim = self.key(f"{a}.attention.key_length", self.hidden // self.heads)
        self.eps = self.key(f"{a}.attention.layer_norm_rms_epsilon")
        self.theta = self.key(f"{a}.rope.freq_base", 10000.0)
        self.window = self.key(f"{a}.attention.sliding_window", 0)
        self.scale = self.key(f"{a}.attention.scale", 0.0) or 1.0 / np.sqrt(self.head_dim)
        self.softcap = self.key(f"{a}.final_logit_softcapping", 0.0) if a == "gemma3" else 0.0
        pattern = self.key(f"{a}.attention.sliding_window_pattern", 6)
        if isinstance(pattern, list):
            self.local = [bool(p) for p in pattern]
        else:
            self.local = [(i + 1) % pattern != 0 for i in range(self.layers)]
        if a != "gemma3" or not self.window:
            self.local = [False] * self.layers
        self.local_theta = self.key(f"{a}.rope.freq_base_swa", 10000.0)

    def key(self, name, default=None):
        field = self.reader.fields.get(name)
        if field is None:
            if default is None:
                raise SystemExit(f"missing key {name}")
            return default
        return field.contents()


class Weights:
    """Tensors, dequantised to f32 on first use."""

    def __init__(self, reader, arch):
        self.arch = arch
        self.tensors = {t.name: t for t in reader.tensors}
        self.cache = {}

    def get(self, name):
        if name not in self.cache:
            t = self.tensors.get(name)
            value = None
            if t is not None:
                value = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
                value = value.reshape(t.shape[::-1])
            self.cache[name] = value
        return self.cache[name]

    def linear(self, name, x):
        """x W^T, with the tensor's own scale and bias where the file has them.

        The order is the format's custom: a projection of the attention is scaled and then biased, one of the
        feed-forward block is biased and then scaled; Gemma's feed-forward block reads neither.
        """
        y = x @ self.get(f"{name}.weight").T
        scale, bias = self.get(f"{name}.scale"), self.get(f"{name}.bias")
        if ".ffn_" in name:
            if self.arch == "gemma3":
                return y
            y = y if bias is None else y + bias
            return y if scale is None else y * scale
        y = y if scale is None else y * scale
        return y if bias is None else y + bias


def rms_norm(x, weight, eps):
    mean_square = np.mean(x.astype(np.float64) ** 2, axis=-1, keepdims=True)
    return (x / np.sqrt(mean_square + eps)).astype(np.float32) * weight


def rope(x, positions, theta, factors, interleaved):
    """x: [tokens, heads, head_dim]."""
    half = x.shape[-1] // 2
    frequency = theta ** (-np.arange(half, dtype=np.float64) / half)
    if factors is not None:
        frequency = frequency / factors
    angle = positions[:, None] * frequency[None, :]
    cos, sin = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
    first, second = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    rotated = (first * cos - second * sin, first * sin + second * cos)
    if interleaved:
        return np.stack(rotated, axis=-1).reshape(x.shape).astype(np.float32)
    return np.concatenate(rotated, axis=-1).astype(np.float32)


class Model:
    """One sequence's forward pass; keeps keys and values so that it can be continued."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.config = Config(reader)
        self.weights = Weights(reader, self.config.arch)
        self.reader = reader

    def start(self):
        return [None] * self.config.layers

    def attention(self, q, k, v, local, first_position):
        c = self.config
        tokens, keys = q.shape[0], k.shape[0]
        query = np.arange(first_position, first_position + tokens)[:, None]
        key = np.arange(keys)[None, :]
        visible = key <= query
        if local:
            visible &= query - key < c.window
        out = np.empty_like(q)
        for h in range(c.heads):
            kv = h * c.kv_heads // c.heads
            scores = (q[:, h] @ k[:, kv].T).astype(np.float64) * c.scale
            scores = np.where(visible, scores, -np.inf)
            p = np.exp(scores - scores.max(axis=-1, keepdims=True))
            p /= p.sum(axis=-1, keepdims=True)
            out[:, h] = p.astype(np.float32) @ v[:, kv]
        return out

    def forward(self, ids, cache):
        c, w = self.config, self.weights
        gemma = c.arch == "gemma3"
        first = 0 if cache[0] is None else cache[0][0].shape[0]
        positions = np.arange(first, first + len(ids), dtype=np.float64)
        factors = w.get("rope_freqs.weight") if not gemma else None
        x = w.get("token_embd.weight")[ids]
        if gemma:
            x = x * np.float32(np.sqrt(np.float32(c.hidden)))
        for i in range(c.layers):
            b = f"blk.{i}."
            theta = c.local_theta if c.local[i] else c.theta
            h = rms_norm(x, w.get(b + "attn_norm.weight"), c.eps)
            q = w.linear(b + "attn_q", h).reshape(len(ids), c.heads, -1)
            k = w.linear(b + "attn_k", h).reshape(len(ids), c.kv_heads, -1)
            v = w.linear(b + "attn_v", h).reshape(len(ids), c.kv_heads, -1)
            if gemma:
                q = rms_norm(q, w.get(b + "attn_q_norm.weight"), c.eps)
                k = rms_norm(k, w.get(b + "attn_k_norm.weight"), c.eps)
            q = rope(q, positions, theta, factors, interleaved=not gemma)
            k = rope(k, positions, theta, factors, interleaved=not gemma)
            if cache[i] is not None:
                k = np.concatenate((cache[i][0], k))
                v = np.concatenate((cache[i][1], v))
            cache[i] = (k, v)
            a = self.attention(q, k, v, c.local[i], first).reshape(len(ids), -1)
            a = w.linear(b + "attn_output", a)
            if gemma:
                a = rms_norm(a, w.get(b + "post_attention_norm.weight"), c.eps)
            x = x + a
            h = rms_norm(x, w.get(b + "ffn_norm.weight"), c.eps)
            gate, up = w.linear(b + "ffn_gate", h), w.linear(b + "ffn_up", h)
            g = gate.astype(np.float64)
            if gemma:
                act = 0.5 * g * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3)))
            else:
                act = g / (1 + np.exp(-g))
            f = w.linear(b + "ffn_down", act.astype(np.float32) * up)
            if gemma:
                f = rms_norm(f, w.get(b + "post_ffw_norm.weight"), c.eps)
            x = x + f
        return x

    def logits(self, x):
        w = self.weights
        h = rms_norm(x, w.get("output_norm.weight"), self.config.eps)
        head = w.get("output.weight")
        out = h @ (w.get("token_embd.weight") if head is None else head).T
        if self.config.softcap:
            out = np.tanh(out / self.config.softcap) * self.config.softcap
        return out


def check(model_path, recorded_path):
    with open(recorded_path, "rb") as f:
        data = f.read()
    n, vocab = struct.unpack_from("<ii", data)
    ids = np.frombuffer(data, "<i4", n, 8)
    expected = np.frombuffer(data, "<f4", n * vocab, 8 + 4 * n).reshape(n, vocab)
    model = Model(model_path)
    found = model.logits(model.forward(ids, model.start()))
    diff = np.abs(found - expected)
    print(f"max {diff.max():.3g} mean {diff.mean():.3g} argmax equal {(found.argmax(1) == expected.argmax(1)).mean():.3f}")


def byte_level_tokenizer(model):
    """GPT-2 byte-level BPE with single digits, as the `smollm` pre-tokenizer declares."""
    import tokenizers as tk

    tokens = model.config.key("tokenizer.ggml.tokens")
    merges = [tuple(m.split(" ")) for m in model.config.key("tokenizer.ggml.merges")]
    kinds = model.config.key("tokenizer.ggml.token_type")
    tokenizer = tk.Tokenizer(tk.models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = tk.pre_tokenizers.Sequence(
        [tk.pre_tokenizers.Digits(individual_digits=True), tk.pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.add_special_tokens([t for t, kind in zip(tokens, kinds) if kind == gguf.TokenType.CONTROL])
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def sentencepiece_tokenizer(model):
    """SentencePiece BPE: the adjacent pair whose joint piece scores best is joined first, leftmost among equals."""
    tokens = model.config.key("tokenizer.ggml.tokens")
    scores = model.config.key("tokenizer.ggml.scores")
    ids = {t: i for i, t in enumerate(tokens)}

    def encode(text):
        pieces = list(text.replace(" ", "\u2581"))
        left = list(range(-1, len(pieces) - 1))
        right = list(range(1, len(pieces) + 1))
        queue = []

        def offer(i):
            j = right[i]
            if j < len(pieces):
                joint = pieces[i] + pieces[j]
                if joint in ids:
                    heapq.heappush(queue, (-scores[ids[joint]], i, j, joint))

        for i in range(len(pieces)):
            offer(i)
        while queue:
            _, i, j, joint = heapq.heappop(queue)
            if pieces[i] is None or right[i] != j or pieces[j] is None or pieces[i] + pieces[j] != joint:
                continue
            pieces[i], pieces[j] = joint, None
            right[i] = right[j]
            if right[i] < len(pieces):
                left[right[i]] = i
            offer(i)
            if left[i] >= 0:
                offer(left[i])
        out = [model.config.key("tokenizer.ggml.bos_token_id")]
        for piece in pieces:
            if piece is None:
                continue
            if piece in ids:
                out.append(ids[piece])
            else:
                out += [ids[f"<0x{byte:02X}>"] for byte in piece.encode()]
        return out

    return encode


def logprobs(model, x):
    """Natural log-probabilities, f64, of rows `x`."""
    rows = model.logits(x).astype(np.float64)
    rows -= rows.max(axis=-1, keepdims=True)
    rows -= np.log(np.exp(rows).sum(axis=-1, keepdims=True))
    return rows


def best(row):
    """The TOP_K best ids, ties by lower id."""
    # The k-th value may be shared: every id that reaches it competes.
    floor = np.partition(row, len(row) - TOP_K)[len(row) - TOP_K]
    candidates = np.flatnonzero(row >= floor)
    return candidates[np.lexsort((candidates, -row[candidates]))][:TOP_K]


def record(model_path, prompts_path, out_path):
    model = Model(model_path)
    root = pathlib.Path(__file__).resolve().parent.parent
    arch = model.config.arch
    encode = byte_level_tokenizer(model) if arch == "llama" else sentencepiece_tokenizer(model)
    with open(prompts_path, encoding="utf-8") as f:
        prompts = json.load(f)
    vocab = model.weights.get("token_embd.weight").shape[0]
    total = 0
    with open(out_path, "wb") as out:
        out.write(b"ASSAYOR1" + struct.pack("<III", vocab, TOP_K, len(prompts)))
        for prompt in prompts:
            text = prompt["text"]
            if "file" in prompt:
                contents = (root / prompt["file"]).read_text(encoding="utf-8")
                text = prompt["before"] + contents[: prompt.get("characters")] + text
            ids = encode(text)
            num_prompt = len(ids)
            cache = model.start()
            hidden = [model.forward(np.array(ids), cache)]
            for _ in range(prompt["greedy"]):
                ids.append(int(best(logprobs(model, hidden[-1][-1:])[0])[0]))
                hidden.append(model.forward(np.array(ids[-1:]), cache))
            # The last token has no successor to judge.
            hidden = np.concatenate(hidden)[:-1]
            target, tops, full = [], [], []
            for start in range(0, len(hidden), HEAD_ROWS):
                for i, row in enumerate(logprobs(model, hidden[start : start + HEAD_ROWS]), start):
                    target.append(row[ids[i + 1]])
                    top_ids = best(row)
                    tops.append((top_ids, row[top_ids]))
                    if i == num_prompt - 1 and prompt["name"] in FULL_ROWS[arch]:
                        full.append((i, row.astype("<f4")))
            name = prompt["name"].encode()
            out.write(struct.pack("<I", len(name)) + name + struct.pack("<II", len(ids), num_prompt))
            out.write(np.array(ids, "<u4").tobytes() + np.array(target, "<f4").tobytes())
            for top_ids, top_logprobs in tops:
                out.write(top_ids.astype("<u4").tobytes() + top_logprobs.astype("<f4").tobytes())
            out.write(struct.pack("<I", len(full)))
            for position, row in full:
                out.write(struct.pack("<I", position) + row.tobytes())
            total += len(ids)
            print(f"{prompt['name']}: {num_prompt} + {len(ids) - num_prompt} tokens, mean logprob {np.mean(target):.3f}", flush=True)
    print(f"{total} tokens")


if __name__ == "__main__":
    commands = {"check": check, "record": record}
    command = commands.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if command is None:
        raise SystemExit(__doc__)
    command(*sys.argv[2:])
