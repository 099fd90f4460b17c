"""The Node clients (`node/*.test.mjs`) against the real server; their packages are set up by `cargo xtask test`."""

import os
import pathlib
import shutil
import subprocess

import pytest

FOLDER = pathlib.Path(__file__).parent / "node"


@pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed")
@pytest.mark.parametrize("file", sorted(path.name for path in FOLDER.glob("*.test.mjs")))
def test_node(server, file):
    assert (FOLDER / "node_modules").is_dir(), "run `npm ci` in tests/clients/node (cargo xtask test does)"
    run = subprocess.run(
        ["node", "--test", file],
        cwd=FOLDER,
        env={**os.environ, "SERVER_URL": server.url},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
