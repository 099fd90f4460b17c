"""The two servers of run.py: ours, and llama.cpp's, which is built here if it is not given."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "target"
REQUIREMENTS = ROOT / "benches" / "peers" / "requirements.txt"
# How long a server may take to be ready.
PATIENCE_S = 120
# Some compilers (GCC 12) make AMX code of the peer's that dies of an illegal instruction.
WITHOUT_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(*command):
    say("$ " + " ".join(str(word) for word in command))
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdout=sys.stderr)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed ({done.returncode})")


class Server:
    """A running server; its log goes to target/load."""

    def __init__(self, binary, arguments):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = TARGET / "load" / f"{pathlib.Path(binary).name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = [str(word) for word in [binary, *arguments, "--host", "127.0.0.1", "--port", self.port]]
        self.process = subprocess.Popen(command, stdout=self.log.open("wb"), stderr=subprocess.STDOUT)

    def __enter__(self):
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise ServerEnded(self.process.wait(), self.log)
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=1) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False


class ServerEnded(Exception):
    def __init__(self, status, log):
        super().__init__(f"the server ended ({status}) before it was ready; see {log}")
        self.status = status


def ours(assay, path, num_threads, *more):
    return Server(assay, ["serve", "--model", path, "--threads", num_threads, *more])


def pulled(assay, name):
    """The path of a model that `assay pull` knows."""
    return subprocess.run([assay, "pull", name], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def peer(binary, path, num_threads, num_slots):
    """llama.cpp's server with room for each slot; everything else is its default."""
    context = 2048 * num_slots
    return Server(binary, ["-m", path, "-t", num_threads, "-np", num_slots, "-c", context, "--no-ui"])


def built_peer(path):
    """llama-server from the sources that the peer's Python package ships, built for this machine."""
    binary = TARGET / "load" / "build" / "bin" / "llama-server"
    if not binary.exists():
        build_peer("")
    try:
        with peer(binary, path, 1, 1):
            pass
    except ServerEnded as ended:
        if ended.status != -signal.SIGILL:
            sys.exit(str(ended))
        say("the peer's build dies of an illegal instruction; building it without AMX")
        build_peer(WITHOUT_AMX)
    return binary


def build_peer(compiler_flags):
    say("building llama.cpp's server; this takes a while")
    version = re.search(r"^llama-cpp-python==(\S+)$", REQUIREMENTS.read_text(), re.MULTILINE).group(1)
    work = TARGET / "load"
    sources = work / f"llama_cpp_python-{version}" / "vendor" / "llama.cpp"
    if not sources.exists():
        pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:"]
        run(*pip, "--dest", work, f"llama-cpp-python=={version}")
        with tarfile.open(work / f"llama_cpp_python-{version}.tar.gz") as archive:
            archive.extractall(work, filter="data")
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_TESTS=OFF"]
    options += ["-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_APP=OFF"]
    options += [f"-DCMAKE_C_FLAGS={compiler_flags}", f"-DCMAKE_CXX_FLAGS={compiler_flags}"]
    run("cmake", "-S", sources, "-B", work / "build", *options)
    run("cmake", "--build", work / "build", "--target", "llama-server", "--parallel", os.cpu_count())
