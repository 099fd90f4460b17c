#!/usr/bin/env python3
"""Assay's server under load, beside llama.cpp's where it has the same route: medians of alternating runs.

    python3 benches/load/run.py                              # everything; builds what it needs under target/
    python3 benches/load/run.py --only overhead --repeats 3

- throughput: eight chats streamed at once (SmolLM2 Q4_1), tokens a second; the peer with each of `--slots`, its best counts;
- first-token: a prompt of 1,501 tokens (SmolLM2 Q8_0), cold and once more;
- overhead: scoring of one token behind a cached text of 760 tokens, 200 requests a second at random moments: from a
  request's last byte to the step that computes it, as /metrics tells, and what of it is waiting for other steps.

Prints Markdown. Each server stands alone while it is measured; run it on a quiet machine.
"""

import argparse
import pathlib
import statistics
import sys

import client
import servers

PROMPT_TOKENS = 1501
STREAM_TOKENS = 128
# From a request's last byte, and from its place in the engine's queue, to its first step.
WAITS = ["assay_request_overhead_seconds", "vllm:request_queue_time_seconds"]
SUBJECTS = ["a lighthouse", "a clockmaker", "two foxes", "a lost map", "an old train", "a glass city", "the tide", "a violin"]
STORIES = [f"Write a very long story about {subject}." for subject in SUBJECTS]
# 760 tokens that every scoring request begins with.
TEXT = " ".join(f"Record {number}: the parcel for {subject} left the depot on day {number}." for number, subject in enumerate(SUBJECTS * 5))
REQUANTISED = servers.TARGET / "peers" / "models" / "SmolLM2-135M-Instruct.Q8_0.gguf"
KINDS = ["throughput", "first-token", "overhead"]


def throughput(arguments):
    """Rows of the table: who, and tokens a second."""
    contenders = [("Assay", lambda: servers.ours(arguments.assay, arguments.q4_1, arguments.threads))]
    contenders.append(
        ("Assay, --speculation off", lambda: servers.ours(arguments.assay, arguments.q4_1, arguments.threads, "--speculation", "off"))
    )
    for slots in arguments.slots if arguments.peer else []:
        contenders.append(
            (f"llama.cpp, {slots} slots", lambda slots=slots: servers.peer(arguments.peer, arguments.q4_1, arguments.threads, slots))
        )
    samples = {name: [] for name, _ in contenders}
    for _ in range(arguments.repeats):
        for name, start in contenders:
            with start() as server:
                client.tokens_per_second(server.port, STORIES[:1], 8)
                samples[name].append(client.tokens_per_second(server.port, STORIES, STREAM_TOKENS))
                servers.say(f"{name}: {samples[name][-1]:.0f} tokens/s")
    medians = {name: statistics.median(rates) for name, rates in samples.items()}
    best = max((rate for name, rate in medians.items() if name.startswith("llama.cpp")), default=None)
    ratio = lambda name, rate: f"{rate / best:.2f}x" if best and name.startswith("Assay") else ""
    rows = [[name, f"{rate:,.0f}", ratio(name, rate)] for name, rate in medians.items()]
    return table(["eight streams, Q4_1", "tokens/s", "of the peer's best"], rows)


def first_token(arguments):
    contenders = [("Assay", lambda: servers.ours(arguments.assay, arguments.q8_0, arguments.threads))]
    if arguments.peer:
        contenders.append(("llama.cpp", lambda: servers.peer(arguments.peer, arguments.q8_0, arguments.threads, 1)))
    rows = []
    for name, start in contenders:
        cold, cached = [], []
        with start() as server:
            client.seconds_to_first_token(server.port, prompt(0)[:32])
            for repeat in range(arguments.repeats):
                for times in (cold, cached):
                    times.append(client.seconds_to_first_token(server.port, prompt(1 + repeat)))
        servers.say(f"{name}: cold {cold}, cached {cached}")
        rows.append([name, f"{statistics.median(cold):.2f} s", f"{statistics.median(cached) * 1e3:.0f} ms"])
    return table([f"first token of {PROMPT_TOKENS:,}, Q8_0", "cold", "cached"], rows)


def overhead(arguments):
    body = {"query": TEXT, "items": [" yes"]}
    samples = []
    with servers.ours(arguments.assay, arguments.q4_1, arguments.threads) as server:
        client.at_rate(server.port, "/v1/score", body, 50, 50)
        for _ in range(arguments.repeats):
            before = [client.Histogram(server.port, name) for name in WAITS]
            num_requests = int(arguments.rate * arguments.seconds)
            answer = client.at_rate(server.port, "/v1/score", body, arguments.rate, num_requests)
            waits = [client.Histogram(server.port, name).since(earlier) for name, earlier in zip(WAITS, before)]
            samples.append([wait.quantile(share) for wait in waits for share in (0.5, 0.99)] + [answer])
            servers.say(f"overhead: {samples[-1]} s")
    medians = [statistics.median(column) for column in zip(*samples)]
    cells = [f"{arguments.rate:.0f}/s"] + [f"≤ {wait * 1e3:g} ms" for wait in medians[:-1]]
    head = ["scoring, Q4_1", "to the first step: p50", "p99", "of it in the queue: p50", "p99", "answer at the client: p50"]
    return table(head, [cells + [f"{medians[-1] * 1e3:.1f} ms"]])


def prompt(salt):
    """1,501 ids; of different salts from the first on."""
    return [1000 + (7 * position + 131 * salt) % 20000 for position in range(PROMPT_TOKENS)]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    kinds = lambda text: [kind for kind in text.split(",") if kind in KINDS or parser.error(f"--only: {kind}")]
    parser.add_argument("--only", type=kinds, default=KINDS, help=", ".join(KINDS))
    parser.add_argument("--threads", type=int, default=2, help="threads of each server")
    parser.add_argument("--repeats", type=int, default=5, help="samples of each figure")
    parser.add_argument("--slots", type=lambda text: [int(word) for word in text.split(",")], default=[4, 8], help="of the peer")
    parser.add_argument("--rate", type=float, default=200.0, help="scoring requests a second")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long they come")
    parser.add_argument("--assay", type=pathlib.Path, help="a built binary [default: build one]")
    parser.add_argument("--peer", type=pathlib.Path, help="a built llama-server [default: build one]")
    parser.add_argument("--no-peer", action="store_true", help="measure ours alone")
    parser.add_argument("--q4-1", type=pathlib.Path, help="SmolLM2-135M-Instruct.Q4_1.gguf [default: `assay pull` fetches it]")
    parser.add_argument("--q8-0", type=pathlib.Path, default=REQUANTISED, help="the same as Q8_0 [default: %(default)s]")
    arguments = parser.parse_args()
    if "first-token" in arguments.only and not arguments.q8_0.exists():
        parser.error(f"{arguments.q8_0} is missing: benches/peers/run.py makes it, or tools/requantize.py")
    if arguments.repeats < 1:
        parser.error("--repeats: at least 1")
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.assay is None:
        servers.run("cargo", "build", "--release", "--package", "assay-cli")
        arguments.assay = servers.TARGET / "release" / "assay"
    if arguments.q4_1 is None:
        arguments.q4_1 = servers.pulled(arguments.assay, "smollm2-135m-instruct")
    if arguments.no_peer or arguments.only == ["overhead"]:
        arguments.peer = None
    elif arguments.peer is None:
        arguments.peer = servers.built_peer(arguments.q4_1)
    measured = {"throughput": throughput, "first-token": first_token, "overhead": overhead}
    print("\n".join(measured[kind](arguments) for kind in arguments.only))


if __name__ == "__main__":
    sys.exit(main())
