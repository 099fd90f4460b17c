"""Every page: its blocks run and show what comes out, its links lead somewhere."""

import pathlib

import blocks
import pytest
import runner

PAGES = blocks.pages()


@pytest.mark.parametrize("page", PAGES)
def test_blocks(page, shared_server, tmp_path):
    state = runner.Page(tmp_path, shared_server)
    try:
        for block in blocks.blocks(page, blocks.read(page)):
            state.run(block)
    finally:
        state.close()


@pytest.mark.parametrize("page", PAGES)
def test_links(page):
    text = blocks.read(page)
    faults = [f"{target}: {fault}" for target in blocks.links(text) if (fault := link_fault(page, target))]
    faults += [f"`{path}` is not there" for path in blocks.named_paths(text) if not (blocks.ROOT / path).exists()]
    assert not faults, f"{page}: {faults}"


def link_fault(page, target):
    """Why a link leads nowhere; None where it does, or where it leads out of the repository."""
    if target.startswith(("https://", "http://", "mailto:")):
        return None
    path, _, anchor = target.partition("#")
    file = blocks.ROOT / pathlib.Path(page).parent / path if path else blocks.ROOT / page
    if not file.resolve().is_relative_to(blocks.ROOT) or not file.exists():
        return "no such file"
    if anchor and anchor not in blocks.anchors(file.read_text(encoding="utf-8")):
        return "no such heading"
    return None
