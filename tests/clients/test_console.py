"""The browser console (`console/*.test.mjs`) on the real server, in Debian's Chromium; `cargo xtask test` sets both up."""

import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import Server

FOLDER = pathlib.Path(__file__).parent / "console"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
KEY = "a-key-for-the-console"

pytestmark = [
    pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed"),
    pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed (apt-get install chromium)"),
]


def run(file, **environment):
    assert (FOLDER / "node_modules").is_dir(), "run `npm ci` in tests/clients/console (cargo xtask test does)"
    run = subprocess.run(
        ["node", "--test", file],
        cwd=FOLDER,
        env={**os.environ, "CHROMIUM": CHROMIUM, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_views(server):
    run("views.test.mjs", SERVER_URL=server.url)


def test_key():
    keyed = Server("--api-key", KEY)
    try:
        run("key.test.mjs", KEYED_SERVER_URL=keyed.url, SERVER_URL=keyed.url, KEY=KEY)
    finally:
        keyed.stop()
