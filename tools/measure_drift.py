#!/usr/bin/env python3
"""How far reported log-probabilities move when nothing about a request changes but its company, cache or threads.

    cargo build --release && python3 tools/measure_drift.py MODEL.gguf … --machine WORDS --out docs/pictures/drift.json

For each file, a dozen questions go to each server, greedy, with the log-probability of every token of the reply: alone and uncached on two
threads, which is what the other runs are compared with; asked a second time, with the prompt in the cache; eight at
once; alone on one thread. Tokens are compared up to the first that differs. llama.cpp's server is the one that
`benches/load/run.py` builds; without `--llama-server` it is built here.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benches" / "load"))
import servers  # noqa: E402

MAX_TOKENS = 32
# One for each request that is to find nothing of others in our cache.
SALTS = itertools.count()
TOPICS = [
    "a whale", "the tides", "a bicycle", "bread", "the printing press", "a violin", "snow", "a lighthouse", "photosynthesis", "a volcano",
    "rust", "the moon",
]
QUESTIONS = [f"Explain {topic} to a curious friend, in a few sentences, and name one thing people get wrong." for topic in TOPICS]


def ask(server, question, is_cached):
    """Tokens of the reply with their log-probabilities."""
    body = {
        "messages": [{"role": "user", "content": question}],
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 1,
        "cache_prompt": is_cached,
    }
    if not is_cached:
        # A salt of its own keeps a request from what others left in our cache; llama.cpp's server does not know it.
        body["cache_salt"] = f"{question} {next(SALTS)}"
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        entries = json.load(answer)["choices"][0]["logprobs"]["content"]
    return [(entry["token"], entry["logprob"]) for entry in entries]


# llama.cpp's threads wait without spinning: on a machine where others compute too, they would starve each other.
PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}


def llama_server(binary, path, threads):
    return servers.Server(binary, ["-m", path, "-t", threads, "-np", 8, "-c", 16384, "--no-ui", "--poll", 0])


def runs(start):
    """Replies under each condition; `start(threads)` gives a server."""
    found = {}
    with start(2) as server:
        ask(server, "Hello.", False)
        found["reference"] = [ask(server, question, False) for question in QUESTIONS]
        found["prompt in the cache"] = []
        for question in QUESTIONS:
            # Twice in a row: the second finds what the first left.
            ask(server, question, True)
            found["prompt in the cache"].append(ask(server, question, True))
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            found["eight at once"] = list(pool.map(lambda question: ask(server, question, False), QUESTIONS))
    with start(1) as server:
        found["one thread"] = [ask(server, question, False) for question in QUESTIONS]
    return found


def compared(found):
    """By condition: each compared token's distance in nats, and how many replies took another way."""
    reference = found.pop("reference")
    figures = {}
    for condition, replies in found.items():
        distances, parted = [], 0
        for expected, reply in zip(reference, replies, strict=True):
            for (token, value), (other, moved) in zip(expected, reply):
                if token != other:
                    parted += 1
                    break
                distances.append(abs(value - moved))
        figures[condition] = {
            "tokens": len(distances),
            "moved": sum(distance > 0 for distance in distances),
            "replies_parted": parted,
            "distances": sorted((float(f"{distance:.3g}") for distance in distances if distance > 0), reverse=True),
        }
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=pathlib.Path, nargs="+", metavar="MODEL.gguf")
    parser.add_argument("--assay", type=pathlib.Path, default=ROOT / "target" / "release" / "assay")
    parser.add_argument("--llama-server", type=pathlib.Path)
    parser.add_argument("--machine", required=True, help="what the machine is, for the picture")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    os.environ.update(PASSIVE)
    peer = options.llama_server or servers.built_peer(options.files[0])
    figures = {"machine": options.machine, "questions": len(QUESTIONS), "max_tokens": MAX_TOKENS, "files": {}}
    for path in options.files:
        found = {
            "llama.cpp": compared(runs(lambda threads: llama_server(peer, path, threads))),
            "Assay": compared(runs(lambda threads: servers.ours(options.assay, path, threads))),
        }
        figures["files"][path.stem] = found
        report(path.stem, found)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=1) + "\n")


def report(name, found):
    for server, conditions in found.items():
        for condition, figures in conditions.items():
            largest = max(figures["distances"], default=0)
            print(f"{name} {server:10} {condition:20} {figures['moved']:4} of {figures['tokens']} moved, at most {largest:.3g} nats; "
                  f"{figures['replies_parted']} of {len(QUESTIONS)} replies part", flush=True)


if __name__ == "__main__":
    main()
