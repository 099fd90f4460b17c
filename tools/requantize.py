#!/usr/bin/env python3
"""Writes a GGUF file's weights again in another quantisation, so that one model can be measured in several formats.

    python3 -m venv .venv && .venv/bin/pip install gguf numpy
    .venv/bin/python tools/requantize.py MODEL.gguf RECIPE... [--out DIR]

A recipe is one of those below, case ignored. The result goes to DIR (default: where the model cache is,
`~/.cache/assay/models`) under the model's name with the recipe in place of its quantisation, as
`NAME.Q4_K_M.gguf`; its SHA-256 is printed. Metadata is copied; only `general.file_type` changes.

Which tensor gets which type follows what llama.cpp's own tool does, so the files are of the kind that people have:

- one-dimensional tensors stay as they are, and so does a tensor that already has the wanted type;
- the head (`output.weight`, or `token_embd.weight` where the two are one) is Q6_K unless the recipe is Q8_0 or F16;
- Q4_K_M is Q4_K with Q6_K for `attn_v` and `ffn_down` of the first and last eighth of the layers and every third between;
- a row that 256 does not divide cannot be a K-quant: Q4_K becomes Q5_0, Q6_K becomes Q8_0.

The source is dequantised exactly and quantised again, so an already coarse source stays coarse: these files are for
measuring speed and for judging an engine against f32 math on the *same* file, not for judging a format's quality.

The result is the same bytes on every machine: the legacy types by the `gguf` package, which works element by
element, the K-quants below by element-wise f64 and sums in a written order. Recorded with gguf 0.19.0.
"""

import argparse
import hashlib
import re
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType
from gguf import GGMLQuantizationType as T
from gguf.quants import dequantize
from gguf.quants import quantize as quantize_legacy

# Recipe: type of the matrices, type of the head, number for `general.file_type`.
RECIPES = {
    "F16": (T.F16, T.F16, LlamaFileType.MOSTLY_F16),
    "Q8_0": (T.Q8_0, T.Q8_0, LlamaFileType.MOSTLY_Q8_0),
    "Q4_0": (T.Q4_0, T.Q6_K, LlamaFileType.MOSTLY_Q4_0),
    "Q4_1": (T.Q4_1, T.Q6_K, LlamaFileType.MOSTLY_Q4_1),
    "Q5_0": (T.Q5_0, T.Q6_K, LlamaFileType.MOSTLY_Q5_0),
    "Q5_1": (T.Q5_1, T.Q6_K, LlamaFileType.MOSTLY_Q5_1),
    "Q4_K_M": (T.Q4_K, T.Q6_K, LlamaFileType.MOSTLY_Q4_K_M),
    "Q6_K": (T.Q6_K, T.Q6_K, LlamaFileType.MOSTLY_Q6_K),
}
SHORT_ROW_TYPE = {T.Q4_K: T.Q5_0, T.Q6_K: T.Q8_0}
# Elements quantised at a time: bounds the f64 intermediates.
CHUNK_ELEMENTS = 1 << 22


def total(x: np.ndarray) -> np.ndarray:
    """Sums the last axis (a power of two long) by halves: the same order, hence the same bits, everywhere."""
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x = x[..., :half] + x[..., half:]
    return x[..., 0]


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`a / b`, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b != 0)


def half(x: np.ndarray) -> np.ndarray:
    """`x` rounded to f16."""
    return x.astype(np.float32).astype(np.float16)


def fit_with_minimum(x: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Scale and minimum (both >= 0) per row of `x` so that `scale * q - minimum`, q in 0..=levels, is close to it.

    Starts from the range and refits by least squares for a few other roundings; the least squared error wins.
    """
    low, high = np.minimum(x.min(-1), 0.0), np.maximum(x.max(-1), 0.0)
    scale, minimum = (high - low) / levels, -low

    def error_of(scale: np.ndarray, minimum: np.ndarray) -> np.ndarray:
        q = np.clip(np.rint(ratio(x + minimum[..., None], scale[..., None])), 0, levels)
        return total((scale[..., None] * q - minimum[..., None] - x) ** 2)

    error = error_of(scale, minimum)
    n, sum_x = x.shape[-1], total(x)
    for step in range(-8, 9):
        trial = ratio(high - low, np.full_like(low, levels + 0.1 * step))
        q = np.clip(np.rint(ratio(x - low[..., None], trial[..., None])), 0, levels)
        sum_q, sum_qq, sum_qx = total(q), total(q * q), total(q * x)
        fitted = ratio(n * sum_qx - sum_q * sum_x, n * sum_qq - sum_q**2)
        offset = (fitted * sum_q - sum_x) / n
        # A minimum below zero cannot be stored: the best line through the origin instead.
        through_zero = offset < 0
        fitted = np.where(through_zero, ratio(sum_qx, sum_qq), fitted)
        offset = np.where(through_zero, 0.0, offset)
        fitted_error = error_of(fitted, offset)
        better = (fitted > 0) & (fitted_error < error)
        scale, minimum = np.where(better, fitted, scale), np.where(better, offset, minimum)
        error = np.where(better, fitted_error, error)
    return scale, minimum


def quantize_q4_k(x: np.ndarray) -> np.ndarray:
    """`x`, `[blocks, 256]` f64, as `[blocks, 144]` bytes."""
    x = x.reshape(len(x), 8, 32)
    scale, minimum = fit_with_minimum(x, 15)
    d, dmin = half(scale.max(-1, keepdims=True) / 63), half(minimum.max(-1, keepdims=True) / 63)
    wide_d, wide_dmin = d.astype(np.float64), dmin.astype(np.float64)
    sc = np.clip(np.rint(ratio(scale, wide_d)), 0, 63)
    m = np.clip(np.rint(ratio(minimum, wide_dmin)), 0, 63)
    q = ratio(x + (wide_dmin * m)[..., None], (wide_d * sc)[..., None])
    q = np.clip(np.rint(q), 0, 15).astype(np.uint8).reshape(-1, 4, 2, 32)
    sc, m = sc.astype(np.uint8), m.astype(np.uint8)
    # Six bits of the first four each, with the top two of the last four above them; then the low nibbles of the last.
    scales = [sc[:, :4] | (sc[:, 4:] >> 4) << 6, m[:, :4] | (m[:, 4:] >> 4) << 6, sc[:, 4:] & 15 | m[:, 4:] << 4]
    qs = (q[:, :, 0] | q[:, :, 1] << 4).reshape(-1, 128)
    return np.concatenate([d.view(np.uint8), dmin.view(np.uint8), *scales, qs], axis=-1)


def quantize_q6_k(x: np.ndarray) -> np.ndarray:
    """`x`, `[blocks, 256]` f64, as `[blocks, 210]` bytes."""
    x = x.reshape(len(x), 16, 16)
    extreme = np.take_along_axis(x, np.abs(x).argmax(-1)[..., None], -1)
    scale = extreme / -32
    # One least-squares step: with these integers, the scale that is closest.
    q = np.clip(np.rint(ratio(x, scale)), -32, 31)
    scale = ratio(total(q * x), total(q * q))
    largest = np.take_along_axis(scale, np.abs(scale).argmax(-1)[..., None], -1)
    d = half(largest / -128)
    wide_d = d.astype(np.float64)
    sc = np.clip(np.rint(ratio(scale, wide_d)), -128, 127)
    q = np.clip(np.rint(ratio(x, (wide_d * sc)[..., None])), -32, 31) + 32
    q = q.astype(np.uint8).reshape(-1, 2, 4, 32)
    ql = (q[:, :, :2] & 15 | q[:, :, 2:] << 4).reshape(-1, 128)
    top = q >> 4
    qh = (top[:, :, 0] | top[:, :, 1] << 2 | top[:, :, 2] << 4 | top[:, :, 3] << 6).reshape(-1, 64)
    return np.concatenate([ql, qh, sc.astype(np.int8).view(np.uint8), d.view(np.uint8)], axis=-1)


K_QUANTS = {T.Q4_K: quantize_q4_k, T.Q6_K: quantize_q6_k}


def quantize(values: np.ndarray, kind: T) -> np.ndarray:
    """`values`, `[rows, k]` f32, as `[rows, bytes of a row]`; f16 and f32 as numbers."""
    if kind not in K_QUANTS:
        return quantize_legacy(values, kind)
    block_len, block_bytes = GGML_QUANT_SIZES[kind]
    blocks = values.reshape(-1, block_len).astype(np.float64)
    return K_QUANTS[kind](blocks).reshape(len(values), -1, block_bytes).reshape(len(values), -1)


def more_bits(layer: int, num_layers: int) -> bool:
    """The layers whose values and down projections Q4_K_M keeps in Q6_K."""
    eighth = num_layers // 8
    return layer < eighth or layer >= 7 * num_layers // 8 or (layer - eighth) % 3 == 2


def wanted_type(recipe: str, name: str, row_len: int, tied: bool, num_layers: int) -> T:
    kind, head, _ = RECIPES[recipe]
    layer = re.match(r"blk\.(\d+)\.(attn_v|ffn_down)\.weight$", name)
    if name == "output.weight" or (tied and name == "token_embd.weight"):
        kind = head
    elif recipe == "Q4_K_M" and layer and more_bits(int(layer[1]), num_layers):
        kind = T.Q6_K
    if row_len % GGML_QUANT_SIZES[kind][0] != 0:
        kind = SHORT_ROW_TYPE.get(kind, kind)
    if row_len % GGML_QUANT_SIZES[kind][0] != 0:
        raise SystemExit(f"{name}: rows of {row_len} cannot be {kind.name}")
    return kind


def convert(tensor, kind: T) -> np.ndarray:
    """The tensor's data in type `kind`, shaped `[..., row]` as the writer expects it."""
    if tensor.tensor_type == kind:
        return tensor.data
    rows = tensor.data.reshape(-1, tensor.data.shape[-1])
    step = max(1, CHUNK_ELEMENTS // int(tensor.shape[0]))
    parts = [quantize(dequantize(rows[i : i + step], tensor.tensor_type), kind) for i in range(0, len(rows), step)]
    return np.concatenate(parts).reshape(*tensor.data.shape[:-1], -1)


def copy_metadata(reader: GGUFReader, writer: GGUFWriter, file_type: int) -> None:
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        if field.name == "general.file_type":
            writer.add_file_type(file_type)
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=element)
    if "general.file_type" not in reader.fields:
        writer.add_file_type(file_type)


def requantize(reader: GGUFReader, recipe: str, path: Path) -> None:
    arch = reader.fields["general.architecture"].contents()
    num_layers = reader.fields[f"{arch}.block_count"].contents()
    tied = all(tensor.name != "output.weight" for tensor in reader.tensors)
    partial = path.with_suffix(".partial")
    writer = GGUFWriter(partial, arch)
    copy_metadata(reader, writer, RECIPES[recipe][2])
    for tensor in reader.tensors:
        kind = tensor.tensor_type
        if len(tensor.shape) > 1:
            kind = wanted_type(recipe, tensor.name, int(tensor.shape[0]), tied, num_layers)
        writer.add_tensor(tensor.name, convert(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("recipe", nargs="+", type=str.upper, choices=list(RECIPES), metavar="RECIPE", help=", ".join(RECIPES))
    parser.add_argument("--out", type=Path, default=Path.home() / ".cache" / "assay" / "models")
    arguments = parser.parse_args()
    reader = GGUFReader(arguments.model)
    stem = re.sub(r"[.-](I?Q\d\w*|B?F16|F32)$", "", arguments.model.stem, flags=re.IGNORECASE)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for recipe in arguments.recipe:
        path = arguments.out / f"{stem}.{recipe}.gguf"
        if path.exists() and path.samefile(arguments.model):
            raise SystemExit(f"{path} is the source itself; choose another --out")
        requantize(reader, recipe, path)
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        print(f"{digest}  {path}")


if __name__ == "__main__":
    main()
