"""Reads Markdown pages: their fenced blocks with the marks that say how each is tested, their links and their headings.

A block's first line names its language and then what is done with it:

    sh run              commands, with `assay`, `python3` and `node` in reach; they must succeed (`exit=N`: end with N;
                        `needs=node`: passed over with the rest of the page where Node is not installed)
    sh serve            a command that stays up; the blocks behind it on the page talk to it
    python run          the blocks of a page are one program, run piece by piece
    js run              a module by itself
    LANGUAGE file=NAME  written to the page's folder, for the blocks behind it
    json POST /path     a body that is sent to the server (`status=N`: the answer's status, else 200)
    LANGUAGE output     what the block before printed; `…` stands for anything
    json reply          what the block before was answered; members left out may be there, "…" stands for anything,
                        and where it ends a list, for all further elements
    json parse          a fragment, which must be JSON; `toml parse` likewise
    LANGUAGE not-run: REASON
"""

import collections
import dataclasses
import functools
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = "```"
HOW = re.compile(
    r"(?P<run>run)(?: exit=(?P<exit>\d+))?(?: needs=(?P<node>node))?|(?P<serve>serve)|file=(?P<file>[\w.-]+)|POST (?P<post>/\S*)(?: status=(?P<status>\d+))?"
    r"|(?P<output>output)|(?P<reply>reply)|(?P<parse>parse)|not-run: (?P<why>\S.*)"
)
# What can be done with a block of which language; the rest of the marks suit every language.
LANGUAGES = {"run": {"sh", "python", "js"}, "serve": {"sh"}, "post": {"json"}, "reply": {"json"}, "parse": {"json", "toml"}}


@dataclasses.dataclass
class Block:
    """A fenced block: `line` is that of its opening fence, counted from 1; `marks` holds the named groups of `HOW`."""

    page: str
    line: int
    language: str
    marks: dict
    text: str

    @property
    def place(self):
        return f"{self.page}:{self.line}"


class Unmarked(Exception):
    """A block that no test would see."""


def pages():
    """Paths of all pages, relative to the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )
    return sorted(page for page in listed.stdout.splitlines() if (ROOT / page).exists())


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, text):
    """The fenced blocks of a page in order.

    Raises `Unmarked` for one that says nothing of how it is tested, or something that is not known.
    """
    found, opened = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith(FENCE):
            if opened:
                lines.append(line)
        elif opened:
            found.append(Block(page, *opened, "".join(line + "\n" for line in lines)))
            opened = None
        else:
            lines, opened = [], (number, *marks(f"{page}:{number}", line))
    if opened:
        raise Unmarked(f"{page}:{opened[0]}: the block does not end")
    return found


def marks(place, line):
    """Language and marks of an opening fence."""
    if not line.startswith(FENCE):
        raise Unmarked(f"{place}: a block begins where its line does")
    language, _, how = line.removeprefix(FENCE).partition(" ")
    matched = HOW.fullmatch(how.strip())
    if not matched:
        raise Unmarked(f"{place}: `{language or 'a block'}` with {how!r}; {__file__} says how blocks are marked")
    known = {name: value for name, value in matched.groupdict().items() if value is not None}
    for name in known:
        if language not in LANGUAGES.get(name, {language}):
            raise Unmarked(f"{place}: {name} is not for blocks of {language!r}")
    return language, known


def prose(text):
    """The page's lines outside of its blocks."""
    inside = False
    for line in text.splitlines():
        if line.startswith(FENCE):
            inside = not inside
        elif not inside:
            yield line


def named_commands(text):
    """Commands of `assay` that the page names as code, or shows without running: subcommand and long flags."""
    shown = [code for line in prose(text) for code in re.findall(r"`(assay [^`]*)`", line)]
    shown += [line for block in blocks("", text) if "why" in block.marks for line in block.text.splitlines()]
    for code in shown:
        if found := re.match(r"(?:\./target/release/)?assay ((?:[a-z]+ ?)+)", code.partition("#")[0]):
            yield code, found[1].split(), set(re.findall(r"(?<!\S)\[?(--[a-z][a-z-]*)", code.partition("#")[0]))


def own_flags(text):
    """Flags of `assay serve` in tables of flags: the column `here`, or the only one, called `setting`."""
    column = None
    for line in prose(text):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] if line.startswith("|") else []
        if not cells:
            column = None
        elif column is None:
            names = [name for name in ("here", "setting") if name in cells]
            column = cells.index(names[0]) if names else -1
        elif 0 <= column < len(cells):
            yield from re.findall(r"(?<![\w-])--[a-z][a-z-]*", cells[column])


def links(text):
    """Targets of the page's links and pictures."""
    for line in prose(text):
        unquoted = re.sub(r"`[^`]*`", "`", line)
        yield from re.findall(r"\]\(([^)\s]+)\)", unquoted)
        yield from re.findall(r'(?:src|srcset|href)="([^"]+)"', unquoted)


def named_paths(text):
    """Files of the repository that the page names as code; words in capitals are the reader's to fill in."""
    for line in prose(text):
        found = re.findall(r"`(?:python3 )?((?:docs|tools|crates|benches|xtask)/[\w./-]+)[` ]", line)
        yield from (path for path in found if not re.search(r"\b[A-Z]{2,}\.rs", path))


@functools.cache
def anchors(text):
    """What `#…` may name: the headings, spelt as repositories on the web spell them."""
    found, seen = set(), collections.Counter()
    for line in prose(text):
        if heading := re.match(r"#+ (.*)", line):
            words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower())
            slug = words.strip().replace(" ", "-")
            repeated = seen[slug]
            found.add(f"{slug}-{repeated}" if repeated else slug)
            seen[slug] += 1
    return found
