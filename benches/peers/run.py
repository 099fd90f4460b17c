#!/usr/bin/env python3
"""Assay beside llama.cpp: the same file, the same threads, the same tokens, in alternation in one run.

    python3 benches/peers/run.py                  # everything; builds what it needs under target/ (half an hour)
    python3 benches/peers/run.py --files Q8_0 --threads 2 --repeats 3

Sets up a virtual environment in target/peers-venv with `llama-cpp-python` built from source for this machine, makes the
quantised files from the shipped one (tools/requantize.py), builds `assay`, and measures. Each sample of ours is followed
at once by the peer's, and a ratio is taken within such a pair; the table has medians. Prints Markdown, and writes the
table and every sample to target/peers/.
"""

import argparse
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "benches" / "peers"
TARGET = ROOT / "target"
# Names of `--files`: which model, and the recipe of tools/requantize.py that makes it, if it is not shipped so.
FILES = {
    "Q4_1": ("smollm2-135m-instruct", None),
    "Q8_0": ("smollm2-135m-instruct", "Q8_0"),
    "Q4_0": ("smollm2-135m-instruct", "Q4_0"),
    "Q4_K_M": ("smollm2-135m-instruct", "Q4_K_M"),
    "gemma-Q4_K_M": ("gemma-3-270m", None),
}
# Name, what `assay bench` is asked, what the peer is asked.
FIGURES = [
    ("prefill 512", ["--only", "prefill", "--prompt", "512"], {"figure": "prefill", "tokens": 512}),
    ("prefill 2048", ["--only", "prefill", "--prompt", "2048"], {"figure": "prefill", "tokens": 2048}),
    (
        "decode 128",
        ["--only", "decode", "--gen", "128", "--batch", "1"],
        {"figure": "decode", "tokens": 128, "batch": 1},
    ),
    (
        "decode 128 x 8",
        ["--only", "decode", "--gen", "128", "--batch", "8"],
        {"figure": "decode", "tokens": 128, "batch": 8},
    ),
]
PROFILES = ["exact", "fast"]
# What `assay bench` exits with where the machine is busy.
BUSY = 3


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, **options):
    """Runs a command of the set-up and gives its standard output."""
    say("$ " + " ".join(str(word) for word in command))
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdout=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed ({done.returncode})")
    return done.stdout


def set_up_python(venv):
    """The virtual environment's interpreter, with the peer installed."""
    python = venv / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", venv])
    probe = subprocess.run([python, "-c", "import llama_cpp, gguf, numpy"], stderr=subprocess.DEVNULL)
    if probe.returncode != 0:
        build_peer(python, "")
    return python


def build_peer(python, compiler_flags):
    """Installs the peer, built here with every instruction that this machine has."""
    say("building llama.cpp; this takes a while")
    environment = {
        **os.environ,
        "CMAKE_ARGS": "-DGGML_NATIVE=ON -DCMAKE_BUILD_TYPE=Release -DLLAVA_BUILD=OFF",
        "CFLAGS": compiler_flags,
        "CXXFLAGS": compiler_flags,
    }
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--force-reinstall", "--no-cache-dir"]
    run([*pip, "--no-binary", "llama-cpp-python", "-r", HERE / "requirements.txt"], env=environment)


def check_peer(python, path):
    """Some compilers (GCC 12) make AMX code of the peer's that dies of an illegal instruction: then it is built without."""
    worker = Worker(python, path, 1)
    if worker.try_seconds({"figure": "prefill", "tokens": 64}) is None:
        if worker.process.wait() != -signal.SIGILL:
            sys.exit(f"the peer ended ({worker.process.returncode})")
        say("the peer's build dies of an illegal instruction; building it without AMX")
        build_peer(python, "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16")
        worker = Worker(python, path, 1)
        worker.seconds({"figure": "prefill", "tokens": 64})
    worker.close()


def model_path(assay, python, name):
    """Path of a file of `FILES`, fetched or made where it is missing."""
    model, recipe = FILES[name]
    shipped = pathlib.Path(run([assay, "pull", model]).strip())
    if recipe is None:
        return shipped
    made = TARGET / "peers" / "models"
    made.mkdir(parents=True, exist_ok=True)
    # NAME.QUANTISATION.gguf becomes NAME.RECIPE.gguf.
    path = made / f"{shipped.stem.rsplit('.', 1)[0]}.{recipe}.gguf"
    if not path.exists():
        run([python, ROOT / "tools" / "requantize.py", shipped, recipe, "--out", made])
    return path


class Worker:
    """The peer behind one file, kept warm between samples."""

    def __init__(self, python, path, num_threads):
        self.process = subprocess.Popen(
            [str(python), str(HERE / "llama_cpp_worker.py"), str(path), str(num_threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.about = self.answer()
        if self.about is None:
            sys.exit(f"the peer ended ({self.process.wait()})")

    def answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def try_seconds(self, request):
        """Seconds of one sample, or `None` if the process ended."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.answer()
        return answer and answer["seconds"]

    def seconds(self, request):
        seconds = self.try_seconds(request)
        if seconds is None:
            sys.exit(f"the peer ended ({self.process.wait()})")
        return seconds

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def num_tokens(request):
    return request["tokens"] * request.get("batch", 1)


def ours(assay, path, num_threads, profile, arguments, force):
    """Tokens a second of one sample, and what `assay bench` says of itself."""
    command = [assay, "bench", "--model", path, "--numerics", profile, "--threads", num_threads, "--repeats", 1, "--json"]
    command += arguments + (["--force"] if force else [])
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    if done.returncode == BUSY:
        sys.exit("the machine is busy; wait, or give --force")
    if done.returncode != 0:
        sys.exit(f"assay bench failed ({done.returncode})")
    report = json.loads(done.stdout)
    return report["runs"][0]["figures"][0]["tokens_per_second"], report


def measure(arguments, assay, python, name):
    """Rows of one file: a dictionary for each number of threads and figure."""
    path = model_path(assay, python, name)
    rows, about = [], {}
    for num_threads in arguments.threads:
        worker = Worker(python, path, num_threads)
        about["peer"] = worker.about
        for figure, bench_arguments, request in FIGURES:
            if figure not in arguments.figures:
                continue
            worker.seconds(request)
            samples = {"llama.cpp": [], **{profile: [] for profile in arguments.profiles}}
            for _ in range(arguments.repeats):
                for profile in arguments.profiles:
                    rate, report = ours(assay, path, num_threads, profile, bench_arguments, arguments.force)
                    samples[profile].append(rate)
                    about["machine"], about["isa"] = report["machine"], report["isa"]
                    peer_rate = num_tokens(request) / worker.seconds(request)
                    samples["llama.cpp"].append(peer_rate)
            rows.append(row_of(path.name, num_threads, figure, samples, arguments.profiles))
            say(markdown_row(rows[-1], arguments.profiles))
        worker.close()
    return rows, about


def row_of(file, num_threads, figure, samples, profiles):
    """Medians, with each ratio taken between neighbours in time."""
    peer = samples["llama.cpp"]
    row = {
        "file": file,
        "threads": num_threads,
        "figure": figure,
        "llama.cpp": statistics.median(peer),
        "samples": samples,
    }
    for index, profile in enumerate(profiles):
        rates = samples[profile]
        ratios = [rate / beside for rate, beside in zip(rates, peer[index :: len(profiles)])]
        row[profile] = {"rate": statistics.median(rates), "ratio": statistics.median(ratios), "ratios": ratios}
    return row


def markdown_row(row, profiles):
    cells = [row["file"], str(row["threads"]), row["figure"], f"{row['llama.cpp']:,.0f}"]
    for profile in profiles:
        cells += [f"{row[profile]['rate']:,.0f}", f"{row[profile]['ratio']:.2f}×"]
    return "| " + " | ".join(cells) + " |"


def has(feature, system_info):
    return "yes" if f"{feature} = 1" in system_info else "no"


def markdown(rows, about, arguments):
    machine, peer = about["machine"], about["peer"]
    info = peer["system_info"]
    head = ["file", "threads", "tokens/s", "llama.cpp"]
    for profile in arguments.profiles:
        head += [profile, "ratio"]
    lines = [
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {platform.system()}. Ours: "
        f"assay {machine['assay']}, {about['isa']}. Peer: llama-cpp-python {peer['llama_cpp_python']} built here "
        f"(AVX512_VNNI: {has('AVX512_VNNI', info)}, AMX_INT8: {has('AMX_INT8', info)}). Medians of {arguments.repeats}"
        + (", on a machine that was not checked to be quiet." if arguments.force else "."),
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *(markdown_row(row, arguments.profiles) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def listed(choices):
    def parse(text):
        words = text.split(",")
        unknown = [word for word in words if word not in choices]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(choices)}")
        return words

    return parse


def counts(text):
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError("whole numbers from 1, separated by commas")
    return numbers


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=listed(list(FILES)), default=list(FILES), help=", ".join(FILES))
    parser.add_argument("--threads", type=counts, default=[1, 2], help="numbers of threads, such as 1,2")
    names = [name for name, _, _ in FIGURES]
    parser.add_argument("--figures", type=listed(names), default=names, help=", ".join(names))
    parser.add_argument("--profiles", type=listed(PROFILES), default=PROFILES, help="exact, fast")
    parser.add_argument("--repeats", type=int, default=5, help="pairs of each figure")
    parser.add_argument("--venv", type=pathlib.Path, default=TARGET / "peers-venv", help="where the peer is installed")
    parser.add_argument("--assay", type=pathlib.Path, help="a built binary [default: build one]")
    parser.add_argument("--out", type=pathlib.Path, default=TARGET / "peers", help="where table and samples go")
    parser.add_argument("--force", action="store_true", help="measure on a busy machine too")
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        parser.error("--repeats: at least 1")
    return arguments


def main():
    arguments = parse_arguments()
    assay = arguments.assay
    if assay is None:
        run(["cargo", "build", "--release", "--package", "assay-cli"])
        assay = TARGET / "release" / "assay"
    python = set_up_python(arguments.venv)
    check_peer(python, model_path(assay, python, "Q4_1"))
    rows, about = [], {}
    for name in arguments.files:
        new_rows, about = measure(arguments, assay, python, name)
        rows += new_rows
    table = markdown(rows, about, arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "report.md").write_text(table)
    (arguments.out / "report.json").write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    print(table)


if __name__ == "__main__":
    main()
