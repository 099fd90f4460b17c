#!/usr/bin/env python3
"""The same requests to two servers of one model file, on the CPU and on a device: every reply must be the same to the bit.

    cargo build --release
    python3 tools/compare_devices.py MODEL.gguf [--device cuda] [--binary target/release/assay] [--other-flags=--gpu-layers=10]

Starts `assay serve` twice, sends both the same traffic, the whole batch at once (greedy and seeded chats or completions,
one that drafts are right about, scores, an echo of a long prompt, decisions), and compares whole JSON replies, digits and
fingerprints included. Then each server replays what the other one recorded. Prints what it saw, and fails at a difference,
or if drafts were not both accepted and rejected. Standard library only.
"""

import argparse
import concurrent.futures
import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARALLEL = 8
# What differs between two runs of one server as well.
PASSING = ("id", "created", "created_at", "receipt", "usage", "timings")
CODE = "\n".join(f"    total_{n} = add(total_{n}, price_{n} * count_{n})" for n in range(12))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def served(binary, model, flags):
    """A server's port; the server ends with the block."""
    port = free_port()
    command = [binary, "serve", "--model", model, "--any-model-name", "--port", str(port), "--parallel", str(PARALLEL), *flags]
    process = subprocess.Popen(command)
    try:
        for _ in range(1200):
            if process.poll() is not None:
                sys.exit(f"{' '.join(map(str, command))}: status {process.returncode}")
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5).read()
                break
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def post(port, path, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        return json.load(urllib.request.urlopen(request, timeout=300))
    except urllib.error.HTTPError as error:
        sys.exit(f"{path}: {error.code} {error.read().decode()[:400]}")


def metric(port, name):
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + "{"))


def generations(has_template):
    """Greedy and seeded ones; the second of each kind repeats its prompt, so that drafts are accepted."""
    for number in range(12):
        text = [f"Tell me about the number {number}.", f"Repeat this code:\n{CODE}\n"][number % 2]
        body = {"max_tokens": 64, "seed": number, "temperature": [0, 0.8, 0][number % 3]}
        if has_template:
            body |= {"messages": [{"role": "user", "content": text}], "logprobs": True, "top_logprobs": [5, 20, 0][number % 3]}
            yield "/v1/chat/completions", body | {"receipt": True}
        else:
            yield "/v1/completions", body | {"prompt": text + CODE, "logprobs": 5, "receipt": True}


def scores():
    ids = [1000 + 7 * position % 20000 for position in range(1000)]
    yield "/v1/completions", {"prompt": ids, "max_tokens": 4, "seed": 7, "temperature": 0, "echo": True, "logprobs": 3}
    for number in range(4):
        yield "/v1/score", {"query": f"The {number}th capital is", "items": [" Paris", " Berlin", " 11", " 1"]}


def decisions():
    for number in range(8):
        question = {"type": "predicate", "instructions": f"Is message {number} about money?"}
        body = {"input": f"I was charged {number} times for March.", "questions": [question], "receipt": True}
        yield "/v1/decisions", body | ({"prior": "content_free"} if number % 2 else {})


def comparable(reply):
    return {name: value for name, value in reply.items() if name not in PASSING}


def first_difference(first, second, path=""):
    """Where two JSON values part, and how."""
    if type(first) is type(second) and isinstance(first, (dict, list)) and len(first) == len(second):
        keys = first if isinstance(first, dict) else range(len(first))
        for key in keys:
            if first[key] != second.get(key) if isinstance(first, dict) else first[key] != second[key]:
                other = second.get(key) if isinstance(first, dict) else second[key]
                return first_difference(first[key], other, f"{path}/{key}")
    return f"{path}: {str(first)[:200]} and {str(second)[:200]}"


def check_same(name, first, second):
    if first != second:
        sys.exit(f"{name}: {first_difference(first, second)}")


def main(arguments):
    own = ["--device", "cpu"]
    other = ["--device", arguments.device, *arguments.other_flags.split()]
    with served(arguments.binary, arguments.model, own) as cpu, served(arguments.binary, arguments.model, other) as device:
        info = json.load(urllib.request.urlopen(f"http://127.0.0.1:{cpu}/tokenizer_info"))
        has_template = bool(info.get("chat_template"))
        traffic = [*generations(has_template), *scores(), *(decisions() if has_template else [])]
        with concurrent.futures.ThreadPoolExecutor(len(traffic)) as pool:
            started = time.perf_counter()
            replies = {}
            for port in (cpu, device):
                replies[port] = list(pool.map(lambda ask, port=port: post(port, *ask), traffic))
                print(f"{len(traffic)} replies in {time.perf_counter() - started:.1f} s", flush=True)
                started = time.perf_counter()
        for (path, body), first, second in zip(traffic, replies[cpu], replies[device]):
            check_same(f"{path} {json.dumps(body)[:200]}", comparable(first), comparable(second))
        print(f"{len(traffic)} replies are the same to the bit, fingerprints too")
        for port, name in ((cpu, "cpu"), (device, arguments.device)):
            accepted = metric(port, "vllm:spec_decode_num_accepted_tokens_total")
            drafted = metric(port, "vllm:spec_decode_num_draft_tokens_total")
            print(f"{name}: {accepted:.0f} of {drafted:.0f} draft tokens accepted")
            if not 0 < accepted < drafted:
                sys.exit(f"{name}: drafts were not both accepted and rejected")
        for made, replayed in ((cpu, device), (device, cpu)):
            receipts = [reply["receipt"] for reply in replies[made] if "receipt" in reply]
            verdicts = [post(replayed, "/v1/replay", {"receipt": receipt}) for receipt in receipts]
            where = "the device" if replayed == device else "the CPU"
            if any(verdict["result"] != "identical" for verdict in verdicts):
                sys.exit(f"replayed on {where}: {verdicts}")
            print(f"{len(verdicts)} receipts of the other replayed on {where}: identical")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target" / "release" / "assay", help="a built server")
    parser.add_argument("--other-flags", default="", help="further flags of the device's server")
    arguments = parser.parse_args()
    arguments.binary = arguments.binary.resolve()
    main(arguments)
