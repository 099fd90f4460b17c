#!/usr/bin/env python3
"""Draws the pictures of docs/guide/numerics.md: how a product, attention and a sum are ordered, and how far values move.

    python3 tools/draw_numerics.py

Writes docs/pictures/*.svg; the measured one is of docs/pictures/drift.json, which `tools/measure_drift.py` writes. The same bytes
each time; a test compares them with the committed ones.
"""

import json
import math
import pathlib
from xml.sax.saxutils import escape

PICTURES = pathlib.Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTH = 840
INK, FAINT, PAPER = "#1f2933", "#7b8794", "#ffffff"
BLUE, ORANGE, GREEN = "#2f6fb3", "#c75b12", "#2c7a4b"
TINTS = {BLUE: "#dbe8f6", ORANGE: "#fbe5d6", GREEN: "#dcefe3", FAINT: "#eef1f4"}


class Picture:
    """SVG elements on a white panel, so that it reads alike on light and dark pages."""

    def __init__(self, height, title, description):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
            'aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="13">',
            f'<title id="t">{escape(title)}</title>',
            f'<desc id="d">{escape(description)}</desc>',
            '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="6" refY="4" orient="auto">'
            f'<path d="M0 0.5 L7 4 L0 7.5 Z" fill="{FAINT}"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{PAPER}" stroke="#d5dbe1"/>',
        ]
        self.text(24, 30, title, size=16, weight=600)

    def text(self, x, y, words, anchor="start", colour=INK, size=13, weight=400, is_code=False):
        family = ' font-family="ui-monospace, monospace"' if is_code else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" font-size="{size}" font-weight="{weight}"{family}>'
            f"{escape(words)}</text>"
        )

    def box(self, x, y, width, height, colour=FAINT, words="", is_code=False, size=12):
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{TINTS[colour]}" stroke="{colour}"/>'
        )
        if words:
            self.text(x + width / 2, y + height / 2 + 4, words, "middle", size=size, is_code=is_code)

    def arrow(self, x1, y1, x2, y2, is_dashed=False):
        dash = ' stroke-dasharray="4 3"' if is_dashed else ""
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{FAINT}" stroke-width="1.3"{dash} marker-end="url(#head)"/>'
        )

    def line(self, x1, y1, x2, y2, colour=FAINT, width=1.0):
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{width:g}"/>'
        )

    def dot(self, x, y, colour, opacity):
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="2.4" fill="{colour}" fill-opacity="{opacity:g}"/>')

    def svg(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def matmul():
    picture = Picture(
        330,
        "One output of a product: 576 weights of a row with 576 activations",
        "The row is cut into blocks of 256, 256 and 64. In a block, sub-blocks of 32 have exact integer sums, which a chain of fused "
        "multiply-adds takes in ascending order; the blocks' results are chained in ascending order.",
    )
    left, unit = 24, 1.375
    x = left
    for index, size in enumerate((256, 256, 64)):
        width = size * unit
        for j in range(size // 32):
            picture.box(x + j * 32 * unit + 1, 62, 32 * unit - 2, 26, BLUE, f"s{index * 8 + j}", size=11)
        picture.text(x + width / 2, 54, f"block {index}: {size}", "middle", FAINT, 12)
        middle = x + width / 2
        picture.arrow(middle, 118, middle, 142)
        chain = "acc = fma(s, w, acc), left to right" if size == 256 else "acc = fma(s, w, acc)"
        picture.box(x + 2, 144, width - 4, 28, GREEN, chain if size == 256 else "the same", size=11)
        picture.arrow(middle, 174, middle, 202)
        x += width + 6
    picture.text(left, 106, "s: the exact int32 sum of 32 products of integers. In any order, by any instruction, it is the same number.", colour=BLUE, size=12)
    picture.box(left, 204, 792, 30, ORANGE, "y = fma(acc0, d0, 0)   then   y = fma(acc1, d1, y)   then   y = fma(acc2, d2, y)", is_code=True)
    picture.text(left, 262, "w: scale of the weights' sub-block. d: scale of the activations' block of 256. Both exact in f32.", size=12)
    picture.text(left, 284, "Rounding happens in the green and the orange chain alone, and their order is part of the definition: threads share out", size=12)
    picture.text(left, 302, "rows, tiles and tokens, never a chain. So the number of threads, the batch and the width of a register cannot show.", size=12)
    return picture


def attention():
    picture = Picture(
        350,
        "Attention of one query over 700 keys: chunks of 256 by absolute position",
        "The keys are cut at positions 256 and 512 whatever pieces the prompt was computed in. Each chunk has its own maximum, sum and "
        "output; the chunks are joined in ascending order.",
    )
    left, unit = 24, 792 / 700
    picture.text(left, 58, "keys and values in the cache", colour=FAINT, size=12)
    for index, (start, end) in enumerate(((0, 256), (256, 512), (512, 700))):
        x, width = left + start * unit, (end - start) * unit
        picture.box(x + 1, 66, width - 2, 28, BLUE, f"chunk {index}: {start} to {end - 1}")
        middle = x + width / 2
        picture.arrow(middle, 96, middle, 120)
        picture.box(x + 8, 122, width - 16, 46, GREEN)
        picture.text(middle, 141, "m = max,  l = Σ exp(s − m)", "middle", size=11)
        picture.text(middle, 159, "o = chain of p·v, keys ascending", "middle", size=11)
        picture.arrow(middle, 170, middle, 194)
    picture.box(left, 196, 792, 28, ORANGE, "joined in order 0, 1, 2: rescale both sides to the larger maximum, then add; output o / l", size=12)
    picture.text(left, 256, "How the prompt came in does not matter:", weight=600)
    rows = (("one piece", (0, 700)), ("pieces of 128", (0, 128, 256, 384, 512, 640, 700)), ("300 from the cache, then the rest", (0, 300, 700)))
    for row, (words, edges) in enumerate(rows):
        y = 268 + row * 22
        for start, end in zip(edges, edges[1:]):
            is_cached = row == 2 and start == 0
            picture.box(300 + start * 0.72, y, (end - start) * 0.72 - 2, 15, FAINT if is_cached else BLUE)
        picture.text(290, y + 12, words, "end", size=12)
    for edge in (256, 512):
        picture.line(300 + edge * 0.72 - 1, 264, 300 + edge * 0.72 - 1, 332, ORANGE, 1.6)
    return picture


def sum32():
    picture = Picture(
        330,
        "SUM32: a long sum in 32 lanes and a fixed tree",
        "Lane l adds the elements l, l + 32, l + 64 and so on in ascending order. The lanes are then added in pairs 16 apart, 8 apart, 4, 2, 1.",
    )
    left, step = 40, 24
    for lane in range(32):
        picture.box(left + lane * step, 54, step - 3, 18, BLUE, str(lane), size=10)
    picture.text(left, 92, "lane 5 adds x5, then x37, then x69, … : the same 32 partial sums in eight registers of 4, two of 16, or one by one", size=12)
    y = 112
    for row, distance in enumerate((16, 8, 4, 2, 1)):
        for lane in range(distance):
            x = left + lane * step
            picture.box(x, y, step - 3, 18, GREEN, str(lane), size=10)
        picture.text(left + distance * step + 8, y + 13, f"lane i + lane (i + {distance})", colour=FAINT, size=12)
        y += 32
        if row < 4:
            picture.arrow(left + 10, y - 13, left + 10, y - 2)
    picture.text(left, 290, "Norms, softmax sums and the normaliser of a log-probability are summed so. A row beyond 1,024 is cut into pieces of 1,024,", size=12)
    picture.text(left, 308, "whose sums are added in order.", size=12)
    return picture


def drift(figures):
    files, questions = figures["files"], figures["questions"]
    rows = [(name, condition, found) for name, servers in files.items() for condition, found in servers["llama.cpp"].items()]
    left, right, top, step = 260, 560, 96, 24
    height = top + step * len(rows) + 14 * len(files) + 118
    picture = Picture(
        height,
        "How far log-probabilities move when only company, cache or threads change",
        "For each file, the distance of each token's log-probability from the same request alone, uncached, on two threads. llama.cpp's "
        "server moves with some files; Assay with none.",
    )
    low, high = -7, 0

    def across(distance):
        return left + (math.log10(max(distance, 10.0**low)) - low) / (high - low) * (right - left)

    words = f"{questions} questions a row, {figures['max_tokens']} tokens each, greedy; {figures['machine']}; a dot is a value that moved"
    picture.text(24, 52, words, colour=FAINT, size=12)
    picture.text(24, 78, "llama.cpp's server", colour=ORANGE, weight=600)
    y, above = top, None
    for name, condition, found in rows:
        if name != above:
            y += 14
            picture.text(24, y + 4, name.rpartition(".")[2], weight=600)
            above = name
        picture.text(left - 14, y + 4, condition, "end", size=12)
        picture.line(left, y, right, y, "#e4e8ec")
        for index, distance in enumerate(found["distances"]):
            # A fixed spread keeps dots apart; its order has no meaning.
            picture.dot(across(distance), y + (index * 7 % 13) - 6, ORANGE, 0.4)
        told = f"{found['moved']:,} of {found['tokens']:,}"
        if found["moved"]:
            told += f", at most {found['distances'][0]:.2g}; {found['replies_parted']} replies parted"
        picture.text(right + 14, y + 4, told, size=11)
        y += step
    own = [found for servers in files.values() for found in servers["Assay"].values()]
    y += 26
    picture.text(24, y + 4, "Assay", colour=BLUE, weight=600)
    picture.text(left - 14, y + 4, "all files and conditions", "end", size=12)
    picture.line(left, y, right, y, "#e4e8ec")
    for distance in (distance for found in own for distance in found["distances"]):
        picture.dot(across(distance), y, BLUE, 0.4)
    moved, tokens = (sum(found[name] for found in own) for name in ("moved", "tokens"))
    picture.text(right + 14, y + 4, f"{moved:,} of {tokens:,}", size=11)
    y += 34
    for exponent in range(low, high + 1):
        x = across(10.0**exponent)
        picture.line(x, y - 4, x, y, FAINT)
        picture.text(x, y + 14, f"1e{exponent}" if exponent else "1", "middle", FAINT, 11)
    picture.text(right, y + 30, "distance in nats", "end", FAINT, 11)
    return picture


def pictures():
    """Name and text of every picture."""
    drawn = {"matmul": matmul(), "attention": attention(), "sum32": sum32()}
    return {f"{name}.svg": picture.svg() for name, picture in drawn.items()}


if __name__ == "__main__":
    for name, svg in pictures().items():
        (PICTURES / name).write_text(svg, encoding="utf-8")
