"""Records what the PyPI package `gguf` dequantises seeded blocks to, for assay-formats' tests.

Run: python3 -m venv .venv && .venv/bin/pip install gguf numpy && .venv/bin/python tools/record_dequant.py

Per type it writes `crates/assay-formats/tests/data/<name>.blocks` (a few blocks whose scales walk over the
extreme finite values, then random ones) and `<name>.values` (the f32 values, little-endian), and one line of
`digests.txt` for many more random blocks, which the Rust test generates again from the same seed:
name, blocks, first 16 hex digits of the SHA-256 of the blocks, the same of the values. `types.txt` lists number,
name, elements and bytes of a block of every type. Recorded with gguf 0.19.0.
"""

import hashlib
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGML_QUANT_SIZES
from gguf.quants import dequantize

DATA = Path(__file__).resolve().parent.parent / "crates" / "assay-formats" / "tests" / "data"

# Byte offsets of the f16 fields of one block: random bits there must stay finite.
F16_FIELDS = {
    T.F16: [0],
    T.Q4_0: [0],
    T.Q4_1: [0, 2],
    T.Q5_0: [0],
    T.Q5_1: [0, 2],
    T.Q8_0: [0],
    T.Q2_K: [80, 82],
    T.Q3_K: [108],
    T.Q4_K: [0, 2],
    T.Q5_K: [0, 2],
    T.Q6_K: [208],
    T.IQ2_XXS: [0],
    T.IQ2_XS: [0],
    T.IQ2_S: [0],
    T.IQ3_XXS: [0],
    T.IQ3_S: [0],
    T.IQ1_S: [0],
    T.IQ4_NL: [0],
    T.IQ4_XS: [0],
    # Here the offset of the four words whose top nibbles are the f16.
    T.IQ1_M: [48],
}
TYPES = [T.F32, T.BF16, *F16_FIELDS, T.MXFP4]

# Zeros, least and greatest subnormals, least normal, greatest finite, one, odd mantissas; both signs.
EXTREME_F16 = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x7BFF, 0xFBFF, 0x3C00, 0xBC00, 0x3555]

# Exponents of MXFP4's scale: subnormal ones, around one, the greatest with which every value is finite.
EXTREME_E8M0 = [0, 1, 2, 3, 126, 127, 128, 129, 251, 252]

RECORDED_VALUES = 1024
DIGESTED_VALUES = 65536
MASK = (1 << 64) - 1


def splitmix64(seed: int, count: int) -> np.ndarray:
    """`count` bytes (a multiple of 8) of the SplitMix64 sequence, each number little-endian."""
    out, state = [], seed
    for _ in range(count // 8):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        out.append(z ^ (z >> 31))
    return np.array(out, dtype="<u8").view(np.uint8).copy()


def make_finite(kind: T, blocks: np.ndarray) -> None:
    """Clears the top exponent bit of floats whose exponent is all ones, and of MXFP4's greatest exponents."""
    if kind == T.MXFP4:
        blocks[blocks[:, 0] > max(EXTREME_E8M0), 0] &= 0x7F
    if kind == T.IQ1_M:
        blocks[:, -1] &= 0xBF
        return
    for offset in F16_FIELDS.get(kind, []):
        high = blocks[:, offset + 1]
        high[(high & 0x7C) == 0x7C] &= 0xBF
    if kind in (T.F32, T.BF16):
        low, high = blocks[:, -2], blocks[:, -1]
        high[((high & 0x7F) == 0x7F) & ((low & 0x80) == 0x80)] &= 0xBF


def random_blocks(kind: T, values: int) -> np.ndarray:
    block_len, block_bytes = GGML_QUANT_SIZES[kind]
    count = values // block_len
    blocks = splitmix64(int(kind), count * block_bytes + 7 & ~7)[: count * block_bytes]
    blocks = blocks.reshape(count, block_bytes)
    make_finite(kind, blocks)
    set_extremes(kind, blocks)
    return blocks


def set_extremes(kind: T, blocks: np.ndarray) -> None:
    if kind == T.MXFP4:
        blocks[: len(EXTREME_E8M0), 0] = EXTREME_E8M0
        return
    fields = F16_FIELDS.get(kind, [])
    step = 0
    for block in blocks[: len(EXTREME_F16)]:
        for field in fields:
            bits = EXTREME_F16[step % len(EXTREME_F16)]
            step += 1
            if kind == T.IQ1_M:
                for i in range(4):
                    high = field + 2 * i + 1
                    block[high] = block[high] & 0x0F | (bits >> (4 * i) & 0x0F) << 4
            else:
                block[field : field + 2] = np.array([bits], dtype="<u2").view(np.uint8)


def values_of(kind: T, blocks: np.ndarray) -> bytes:
    values = dequantize(blocks, kind)
    assert values.dtype == np.float32 and np.isfinite(values).all()
    return values.astype("<f4").tobytes()


def main() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    lines = []
    for kind in TYPES:
        recorded = random_blocks(kind, RECORDED_VALUES)
        (DATA / f"{kind.name.lower()}.blocks").write_bytes(recorded.tobytes())
        (DATA / f"{kind.name.lower()}.values").write_bytes(values_of(kind, recorded))
        many = random_blocks(kind, DIGESTED_VALUES)
        digests = [hashlib.sha256(data).hexdigest()[:16] for data in (many.tobytes(), values_of(kind, many))]
        lines.append(f"{kind.name} {len(many)} {' '.join(digests)}\n")
    (DATA / "digests.txt").write_text("".join(lines))
    sizes = (f"{int(kind)} {kind.name} {size[0]} {size[1]}\n" for kind, size in GGML_QUANT_SIZES.items())
    (DATA / "types.txt").write_text("".join(sizes))


if __name__ == "__main__":
    main()
