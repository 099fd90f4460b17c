"""Runs the blocks of a page in order, in a folder of its own, against a real server.

The pages say `http://127.0.0.1:8080`; what runs here talks to the port that was free. `cargo run --release -- …` is what
a reader types before anything is installed; here the binary that is tested takes its place.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
import urllib.error
import urllib.request

import pytest
from blocks import ROOT
from compare import output_fault, reply_fault

BINARY = pathlib.Path(os.environ.get("ASSAY_TEST_BINARY", ROOT / "target" / "debug" / "assay")).absolute()
NODE_MODULES = ROOT / "tests" / "docs" / "node" / "node_modules"
ADDRESS = "127.0.0.1:8080"
DEFAULT_SERVER = "assay serve --model smollm2-135m-instruct"
START_SECONDS = 120
BLOCK_SECONDS = 300
CARGO = """#!/bin/sh
case "$*" in "run --release -- "*) shift 3; exec assay "$@";; esac
echo "the pages' test runs nothing else of cargo: mark the block not-run" >&2; exit 1
"""
PIP = """#!/bin/sh
echo "the packages of the pages' test stand in tests/docs/requirements.txt: name yours there, and pip in the text" >&2; exit 1
"""
# Blocks of one page are one program; each is answered by one line, its status and what it printed.
PYTHON = """
import contextlib, io, json, sys, traceback
scope = {"__name__": "__main__"}
for line in sys.stdin:
    block = json.loads(line)
    printed, status = io.StringIO(), 0
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile("\\n" * block["line"] + block["text"], block["page"], "exec"), scope)
        except SystemExit as end:
            status = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
            status = 1
    print(json.dumps([status, printed.getvalue()]), file=sys.__stdout__, flush=True)
"""


class Fault(AssertionError):
    """A block that does not do what the page says."""


def environment(folder):
    """What commands see: no setting of the caller's, the tested binary first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "OPENAI_"))}
    kept |= {"PATH": f"{folder / '.bin'}:{os.environ['PATH']}", "ASSAY_PORT": "0", "NO_COLOR": "1"}
    return kept


class Server:
    """What a `serve` block starts."""

    def __init__(self, command, folder):
        self.log, self.address, ready = [], None, threading.Event()
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {command.strip()}"], cwd=folder, env=environment(folder),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )

        def read_log():
            for line in self.process.stdout:
                self.log.append(line)
                if (found := re.search(r"http://(127\.0\.0\.1:[1-9]\d*)", line)) and not self.address:
                    self.address = found[1]
                    ready.set()
            ready.set()

        threading.Thread(target=read_log, daemon=True).start()
        ready.wait(START_SECONDS)
        if not self.address:
            raise Fault(f"{command}\ndid not start:\n{''.join(self.log)}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if status := self.process.wait(60):
            raise Fault(f"the server ended with {status}:\n{''.join(self.log)}")


def make_folder(folder):
    """The page's folder: the repository's files by their names, and what stands in for a reader's own tools."""
    tools = folder / ".bin"
    tools.mkdir()
    (tools / "assay").symlink_to(BINARY)
    for name in ("python", "python3"):
        # A link would lose the environment that it belongs to.
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (tools / name).chmod(0o755)
    for name in ("lm_eval", "promptfoo"):
        # Packages lie in an environment, or where pip's `--target` put them.
        places = [pathlib.Path(sys.executable).parent, *(pathlib.Path(path) / "bin" for path in sys.path), NODE_MODULES / ".bin"]
        if found := next((place / name for place in places if (place / name).exists()), None):
            (tools / name).symlink_to(found)
    for name, script in (("cargo", CARGO), ("pip", PIP)):
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    for name in ("crates", "docs", "tools"):
        (folder / name).symlink_to(ROOT / name)
    if NODE_MODULES.is_dir():
        (folder / "node_modules").symlink_to(NODE_MODULES)


class Page:
    """The state that the blocks of a page share."""

    def __init__(self, folder, shared_server):
        self.folder = folder
        self.shared_server = shared_server
        self.own_server = None
        self.python = None
        self.printed = self.answered = None
        make_folder(folder)

    def close(self):
        if self.python:
            self.python.stdin.close()
            self.python.wait(60)
        if self.own_server:
            self.own_server.stop()

    def address(self):
        return (self.own_server or self.shared_server()).address

    def run(self, block):
        """Raises `Fault` where the block does not do what it is marked with."""
        marks = block.marks
        if "why" in marks:
            return
        if block.language == "js" or "node" in marks:
            self.needs_node(block)
        if "run" in marks:
            text = block.text.replace(ADDRESS, self.address()) if ADDRESS in block.text else block.text
            status, printed = {"sh": self.run_sh, "js": self.run_js, "python": self.run_python}[block.language](block, text)
            if status != int(marks.get("exit", 0)):
                raise Fault(f"{block.place} ended with {status}:\n{printed}")
            self.printed = printed.replace(self.address(), ADDRESS) if ADDRESS in block.text else printed
        elif "serve" in marks:
            if self.own_server:
                self.own_server.stop()
            self.own_server = Server(block.text, self.folder)
            self.printed = "".join(self.own_server.log).replace(self.address(), ADDRESS)
        elif "file" in marks:
            text = block.text.replace(ADDRESS, self.address()) if ADDRESS in block.text else block.text
            (self.folder / marks["file"]).write_text(text, encoding="utf-8")
        elif "post" in marks:
            self.post(block)
        elif "output" in marks:
            self.compare(block, self.printed, output_fault)
        elif "reply" in marks:
            self.compare(block, self.answered, lambda shown, answered: reply_fault(json.loads(shown), answered))
        else:
            {"json": json.loads, "toml": tomllib.loads}[block.language](block.text)

    def needs_node(self, block):
        if not shutil.which("node"):
            pytest.skip(f"{block.place}: Node is not installed")
        if not NODE_MODULES.is_dir():
            raise Fault(f"{block.place}: run `npm ci` in tests/docs/node (cargo xtask test does)")

    def compare(self, block, came_out, fault_of):
        if came_out is None:
            raise Fault(f"{block.place} shows what no block before it gave")
        if fault := fault_of(block.text, came_out):
            raise Fault(f"{block.place}: the page shows something else than comes out\n{fault}")

    def run_sh(self, block, text):
        return self.finish(["bash", "-euo", "pipefail", "-c", text])

    def run_js(self, block, text):
        file = self.folder / f"block-{block.line}.mjs"
        file.write_text(text, encoding="utf-8")
        return self.finish(["node", file.name])

    def finish(self, command):
        done = subprocess.run(
            command, cwd=self.folder, env=environment(self.folder), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=BLOCK_SECONDS,
        )
        # What went wrong stands on stderr; a page shows what is printed.
        return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr

    def run_python(self, block, text):
        if not self.python:
            self.python = subprocess.Popen(
                [sys.executable, "-c", PYTHON], cwd=self.folder, env=environment(self.folder),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
        self.python.stdin.write(json.dumps({"page": block.page, "line": block.line, "text": text}) + "\n")
        self.python.stdin.flush()
        told = ""
        for line in self.python.stdout:
            if line.startswith("[") and (ended := parsed(line)):
                return ended[0], ended[1] if ended[0] == 0 else ended[1] + told
            told += line
        raise Fault(f"{block.place}: Python ended\n{told}")

    def post(self, block):
        json.loads(block.text)
        request = urllib.request.Request(
            f"http://{self.address()}{block.marks['post']}", block.text.encode(), {"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=BLOCK_SECONDS) as answer:
                status, body = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, body = error.code, error.read().decode()
        if status != int(block.marks.get("status", 200)):
            raise Fault(f"{block.place} was answered {status}: {body}")
        # A stream is compared as text.
        is_stream = body.startswith(("data:", "event:"))
        self.printed, self.answered = (body, None) if is_stream else (None, json.loads(body))


def parsed(line):
    """The end of a Python block, if this line is one."""
    try:
        status, printed = json.loads(line)
    except ValueError:
        return None
    return (status, printed) if isinstance(status, int) and isinstance(printed, str) else None
