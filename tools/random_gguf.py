#!/usr/bin/env python3
"""Writes a llama-shaped GGUF of random weights, for measuring where no real file is to be had.

    python3 tools/random_gguf.py 8b FILE        8B-shaped: Q4_K, head Q8_0
    python3 tools/random_gguf.py smollm2 FILE   SmolLM2-135M-shaped: Q4_1, tied head

The weights are seeded and mean nothing; their sizes keep the logits finite. Needs numpy.
"""

import struct
import sys

import numpy as np

F32, Q4_1, Q8_0, Q4_K = 0, 3, 8, 12
#: elements and bytes of a block
BLOCKS = {F32: (1, 4), Q4_1: (32, 20), Q8_0: (32, 34), Q4_K: (256, 144)}
#: layers, hidden, intermediate, heads, key/value heads, vocabulary, context, type, type of an own head
SHAPES = {
    "8b": (32, 4096, 14336, 32, 8, 128256, 8192, Q4_K, Q8_0),
    "smollm2": (30, 576, 1536, 9, 3, 49152, 8192, Q4_1, None),
}


def half(value):
    return np.frombuffer(np.float16(value).tobytes(), np.uint8)


def blocks_of(rng, dtype, elements, k):
    """Random blocks whose weights have a standard deviation near 1/sqrt(k)."""
    per_block, num_bytes = BLOCKS[dtype]
    data = rng.integers(0, 256, (elements // per_block, num_bytes), np.uint8)
    spread = k**-0.5
    if dtype == Q4_1:
        data[:, 0:2], data[:, 2:4] = half(spread / 4.6), half(-7.5 * spread / 4.6)
    elif dtype == Q8_0:
        data[:, 0:2] = half(spread / 74)
    elif dtype == Q4_K:
        data[:, 0:2], data[:, 2:4] = half(spread / 150), half(7.5 * spread / 150)
    return data


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def main():
    shape, path = sys.argv[1:]
    layers, hidden, intermediate, heads, kv_heads, vocab, context, dtype, head = SHAPES[shape]
    key_value = hidden // heads * kv_heads
    tensors = [("token_embd.weight", vocab, hidden, dtype), ("output_norm.weight", 1, hidden, F32)]
    if head is not None:
        tensors.append(("output.weight", vocab, hidden, head))
    for layer in range(layers):
        for name, n, k in [
            ("attn_q", hidden, hidden), ("attn_k", key_value, hidden), ("attn_v", key_value, hidden),
            ("attn_output", hidden, hidden), ("ffn_gate", intermediate, hidden), ("ffn_up", intermediate, hidden),
            ("ffn_down", hidden, intermediate), ("attn_norm", 1, hidden), ("ffn_norm", 1, hidden),
        ]:
            tensors.append((f"blk.{layer}.{name}.weight", n, k, F32 if n == 1 else dtype))
    u32 = lambda key, value: text(key) + struct.pack("<II", 4, value)
    f32 = lambda key, value: text(key) + struct.pack("<If", 6, value)
    entries = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        u32("llama.context_length", context), u32("llama.embedding_length", hidden),
        u32("llama.feed_forward_length", intermediate), u32("llama.block_count", layers),
        u32("llama.attention.head_count", heads), u32("llama.attention.head_count_kv", kv_heads),
        u32("llama.rope.dimension_count", hidden // heads), u32("llama.vocab_size", vocab),
        f32("llama.attention.layer_norm_rms_epsilon", 1e-5), f32("llama.rope.freq_base", 500000.0),
    ]
    infos, sizes, at = [], [], 0
    for name, n, k, kind in tensors:
        per_block, num_bytes = BLOCKS[kind]
        dims = struct.pack("<IQ", 1, k) if n == 1 else struct.pack("<IQQ", 2, k, n)
        infos.append(text(name) + dims + struct.pack("<IQ", kind, at))
        sizes.append(n * k // per_block * num_bytes)
        at += (sizes[-1] + 31) // 32 * 32
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries + infos)
    rng = np.random.default_rng(1)
    # Long tensors repeat a seeded run of blocks that divides none of their rows evenly.
    runs = {}
    with open(path, "wb") as file:
        file.write(header + bytes(-len(header) % 32))
        for (_, n, k, kind), size in zip(tensors, sizes):
            if kind == F32:
                file.write(np.ones(n * k, np.float32).tobytes())
            else:
                if (kind, k) not in runs:
                    count = min(n * k // BLOCKS[kind][0], 99991)
                    runs[kind, k] = blocks_of(rng, kind, count * BLOCKS[kind][0], k).tobytes()
                run = runs[kind, k]
                file.write((run * (size // len(run) + 1))[:size])
            file.write(bytes(-size % 32))


main()
