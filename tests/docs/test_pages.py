"""Every page: its blocks run and show what comes out, its links lead somewhere."""

import functools
import json
import pathlib
import subprocess

import blocks
import pytest
import runner
from compare import ANYTHING

PAGES = blocks.pages()


@pytest.mark.parametrize("page", PAGES)
def test_blocks(page, shared_server, tmp_path, request):
    state = runner.Page(tmp_path, shared_server)
    is_writing = request.config.getoption("--write")
    lines = blocks.read(page).splitlines(keepends=True)
    found = blocks.blocks(page, "".join(lines))
    try:
        for block in found:
            if is_writing and (came_out := new_text(block, state)):
                block.written, block.text = block.text.count("\n"), came_out
            state.run(block)
    finally:
        state.close()
        for block in reversed(found):
            if hasattr(block, "written"):
                lines[block.line : block.line + block.written] = [block.text.rstrip() + "\n"]
        if is_writing:
            (blocks.ROOT / page).write_text("".join(lines), encoding="utf-8")


def new_text(block, state):
    """What `--write` puts in place of what a page shows; None where it stays."""
    if "output" in block.marks and ANYTHING not in block.text:
        return state.printed
    if "reply" in block.marks and not block.text:
        return json.dumps(state.answered, indent=2, ensure_ascii=False)
    return None


@pytest.mark.parametrize("page", PAGES)
def test_links(page):
    text = blocks.read(page)
    faults = [f"{target}: {fault}" for target in blocks.links(text) if (fault := link_fault(page, target))]
    faults += [f"`{path}` is not there" for path in blocks.named_paths(text) if not (blocks.ROOT / path).exists()]
    assert not faults, f"{page}: {faults}"


@pytest.mark.parametrize("page", PAGES)
def test_named_commands(page):
    faults = []
    for code, words, flags in blocks.named_commands(blocks.read(page)):
        help_text = help_of(*words[:2]) or help_of(words[0])
        faults += [code] if help_text is None else [f"{flag} of `{code}`" for flag in flags if flag not in help_text]
    faults += [flag for flag in blocks.own_flags(blocks.read(page)) if flag not in help_of("serve")]
    assert not faults, f"{page}: {faults}"


@functools.cache
def help_of(*words):
    """What `assay WORDS --help` says; None where there is no such command."""
    done = subprocess.run([runner.BINARY, *words, "--help"], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


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
