"""The checks themselves: what they let pass and what they find."""

import blocks
import pytest
import runner
from compare import output_fault, reply_fault
from test_pages import link_fault


def page_of(first_line, text="true\n"):
    return blocks.blocks("page.md", f"# A\n\n```{first_line}\n{text}```\n")


@pytest.mark.parametrize("first_line", ["", "sh", "sh runs", "text run", "yaml parse", "sh not-run:", "python serve", "sh POST /x"])
def test_a_block_must_say_how_it_is_tested(first_line):
    with pytest.raises(blocks.Unmarked):
        page_of(first_line)


def test_marks():
    assert page_of("sh run exit=4")[0].marks == {"run": "run", "exit": "4"}
    assert page_of("json POST /v1/decide status=400")[0].marks == {"post": "/v1/decide", "status": "400"}
    assert page_of("sh not-run: needs a GPU")[0].marks == {"why": "needs a GPU"}
    assert page_of("yaml file=a.yaml")[0].marks == {"file": "a.yaml"}
    with pytest.raises(blocks.Unmarked):
        blocks.blocks("page.md", "```sh run\ntrue\n")
    with pytest.raises(blocks.Unmarked):
        blocks.blocks("page.md", "- a\n  ```sh run\n  true\n  ```\n")


@pytest.mark.parametrize(
    ("shown", "printed", "holds"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nb\nc\n", False),
        ("took … ms\n", "took 12 ms\n", True),
        ("took … ms\n", "took 12\nms\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nd\n", True),
        ("a\n…\nd\n", "a\nb\nc\n", False),
        ("a\n…\n", "a\n", True),
        ("…\nd\n", "a\nb\nd\n", True),
        ("…\nd\n", "a\nbd\n", False),
        ("…\n", "a\nb\n", True),
        ("-0.25 (x)\n", "-0.26 (x)\n", False),
    ],
)
def test_outputs(shown, printed, holds):
    assert (output_fault(shown, printed) is None) == holds


@pytest.mark.parametrize(
    ("shown", "answered", "holds"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 2}, False),
        ({"a": 1}, {"a": 1.0000000000000002}, False),
        ({"a": "…"}, {"a": [1]}, True),
        ([1, "…"], [1, 2, 3], True),
        ([1], [1, 2], False),
        ([1, 2], [1], False),
        (True, 1, False),
    ],
)
def test_replies(shown, answered, holds):
    assert (reply_fault(shown, answered) is None) == holds


def test_links_and_headings():
    assert link_fault("docs/x.md", "../README.md") is None
    assert link_fault("docs/x.md", "../NOWHERE.md") == "no such file"
    assert link_fault("README.md", "#no-such-words") == "no such heading"
    assert blocks.anchors("# A `b` (c)\n## Same\n## Same\n```sh\n# no heading\n```\n") == {"a-b-c", "same", "same-1"}
    assert list(blocks.links("see [a](b.md#c) and `[x](y)`\n![p](q.svg)")) == ["b.md#c", "q.svg"]


def test_what_fails_is_told(tmp_path):
    state = runner.Page(tmp_path, shared_server=None)
    for first_line, text in [("sh run", "echo a; false"), ("python run", "print(1 / 0)"), ("text output", "never\n")]:
        [block] = page_of(first_line, text + "\n")
        with pytest.raises(runner.Fault, match="page.md:3"):
            state.run(block)
    # The page's Python goes on behind an error.
    [block] = page_of("python run", "a = 2\n")
    state.run(block)
    [block] = page_of("python run", "print(a)\n")
    state.run(block)
    [block] = page_of("text output", "2\n")
    state.run(block)
    [block] = page_of("text output", "3\n")
    with pytest.raises(runner.Fault, match="something else"):
        state.run(block)
    state.close()


def test_commands_and_flags_that_are_named():
    text = "Say `assay serve --port 1`.\n\n| theirs | here |\n|---|---|\n| `--a` | `--b N`, `--c-d` |\n\n```sh not-run: why\nassay ledger list F  # --x\n```\n"
    named = [(words, flags) for _, words, flags in blocks.named_commands(text)]
    assert named == [(["serve"], {"--port"}), (["ledger", "list"], set())]
    assert list(blocks.own_flags(text)) == ["--b", "--c-d"]
