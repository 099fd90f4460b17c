"""Writes `crates/assay-formats/src/quant/grids.rs`: the lattice points of the IQ1, IQ2 and IQ3 block formats.

Run: python3 -m venv .venv && .venv/bin/pip install gguf numpy && .venv/bin/python tools/make_grids.py && cargo fmt

The points are facts of the formats, found by their authors' search, with no formula behind them; they are read from
the PyPI package `gguf`. A point of IQ1 and IQ2 is 8 elements of 2 bits, one of IQ3 4 elements of 4 bits: a u16 each,
first element lowest. The element is an index into the format's few values, which stand in the format's own file.
Made with gguf 0.19.0.
"""

from pathlib import Path

import numpy as np
from gguf import quants

OUT = Path(__file__).resolve().parent.parent / "crates" / "assay-formats" / "src" / "quant" / "grids.rs"
HEADER = """\
//! Lattice points of the IQ1, IQ2 and IQ3 formats, made by `tools/make_grids.py` from the tables of the PyPI package
//! `gguf`: facts of the formats.
//!
//! A point is 8 elements of 2 bits (IQ1, IQ2) or 4 elements of 4 bits (IQ3), first element lowest; each element is an
//! index into the few values that the format allows.
"""
# Constant, class, what a point is.
GRIDS = [
    ("IQ2_XXS", quants.IQ2_XXS, "Points of IQ2_XXS: 8 indices of 2 bits."),
    ("IQ2_XS", quants.IQ2_XS, "Points of IQ2_XS: 8 indices of 2 bits."),
    ("IQ2_S", quants.IQ2_S, "Points of IQ2_S: 8 indices of 2 bits."),
    ("IQ3_XXS", quants.IQ3_XXS, "Points of IQ3_XXS: 4 indices of 4 bits (3 used)."),
    ("IQ3_S", quants.IQ3_S, "Points of IQ3_S: 4 indices of 4 bits (3 used)."),
    ("IQ1", quants.IQ1_S, "Points of IQ1_S and IQ1_M: 8 indices of 2 bits."),
]


def words(kind) -> np.ndarray:
    """The points of `kind` as u16."""
    kind.init_grid()
    points = kind.grid.reshape(kind.grid_shape)
    indices = np.searchsorted(kind.grid_map, points)
    assert (np.array(kind.grid_map)[indices] == points).all()
    bits = 16 // kind.grid_shape[1]
    return (indices << (bits * np.arange(kind.grid_shape[1]))).sum(axis=-1)


def main() -> None:
    text = [HEADER]
    for name, kind, meaning in GRIDS:
        table = words(kind)
        assert len(np.unique(table)) == len(table)
        rows = ", ".join(f"0x{word:04x}" for word in table)
        text.append(f"\n/// {meaning}\npub(super) static {name}: [u16; {len(table)}] = [{rows}];\n")
    OUT.write_text("".join(text))


if __name__ == "__main__":
    main()
