"""Records exponentials and logarithms to 100 digits with the PyPI package `mpmath`, for assay-kernels' tests.

Run: python3 -m venv .venv && .venv/bin/pip install mpmath && .venv/bin/python tools/record_exponentials.py

Writes `crates/assay-kernels/tests/data/exponentials.txt`: op, bits of the f64 argument, then the true result as the
bits of two f64, the nearest and what it lacks. Arguments come from a seeded generator, with the ends of the domains,
the neighbourhood of 1 and the places where the reduction turns over. Recorded with mpmath 1.3.0.
"""

import struct
from pathlib import Path
from random import Random

import mpmath as mp

mp.mp.dps = 100
OUT = Path(__file__).resolve().parent.parent / "crates" / "assay-kernels" / "tests" / "data" / "exponentials.txt"
random = Random(7)


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def line(op, x, true):
    high = float(true)
    low = float(true - mp.mpf(high))
    return f"{op} {bits(x):016x} {bits(high):016x} {bits(low):016x}"


def half_steps(lowest, highest):
    for n in random.sample(range(lowest, highest), 60):
        yield (n + 0.5) * float(mp.log(2)) * (1 + random.uniform(-1e-7, 1e-7))


lines = []
exp = [0.0, -87.0, 88.0, -1e-30, 1e-8, -86.99999] + [random.uniform(-87, 88) for _ in range(200)]
exp += [random.uniform(-1, 1) * 2.0 ** random.randint(-30, 0) for _ in range(100)] + list(half_steps(-124, 125))
lines += [line("exp", x, mp.exp(mp.mpf(x))) for x in map(f32, exp)]
exp64 = [0.0, -708.0, 709.0, -1e-300, 1e-17] + [random.uniform(-708, 709) for _ in range(200)]
exp64 += [random.uniform(-40, 0) for _ in range(200)] + [-random.random() * 2.0 ** random.randint(-60, 0) for _ in range(100)]
exp64 += list(half_steps(-1020, 1020))
lines += [line("exp64", x, mp.exp(mp.mpf(x))) for x in exp64]
ln64 = [1.0, 2.0, 0.5, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.7071067811865475, 0.7071067811865476]
ln64 += [1.0 + k * 2.0**-52 for k in (1, 2, 3, 1000)] + [1.0 - k * 2.0**-53 for k in (1, 2, 3, 1000)]
ln64 += [random.uniform(1, 300000) for _ in range(150)] + [random.random() for _ in range(150)]
ln64 += [1 + random.uniform(-1, 1) * 2.0 ** -random.randint(1, 50) for _ in range(150)]
ln64 += [random.random() * 2.0 ** random.randint(-1073, 1020) for _ in range(100)]
lines += [line("ln64", x, mp.log(mp.mpf(x))) for x in ln64]
OUT.parent.mkdir(exist_ok=True)
OUT.write_text("\n".join(lines) + "\n")
