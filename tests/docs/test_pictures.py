"""The pictures are what their script draws, byte for byte."""

import sys

from blocks import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import draw_numerics  # noqa: E402


def test_the_pictures_are_what_the_script_draws():
    drawn = draw_numerics.pictures()
    committed = {path.name: path.read_text(encoding="utf-8") for path in draw_numerics.PICTURES.glob("*.svg")}
    assert committed == drawn, "run python3 tools/draw_numerics.py"
