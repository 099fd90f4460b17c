"""Peak memory of a server that scores long prompts, beside what a positions x vocabulary buffer would take.

For each way to ask, a fresh server answers a plain request of the same length first (weights, keys and values, and the
step's own buffers are then there). Its peak (VmHWM) is then set back to what it holds, so that loading does not count,
and it answers a second request. What the peak grows by, beyond what it grows by for another plain request, is what the
scores took. Exits with 1 if any of them grows by more than a quarter of the buffer.

    cargo build --release
    python3 benches/load/memory.py --model ~/.cache/assay/models/SmolLM2-135M-Instruct.Q8_0.gguf
"""

import argparse
import json
import pathlib
import random
import sys
import urllib.request

from servers import TARGET, ours

# Of the buffer, in parts: more growth than this is a buffer of that kind.
MOST = 4


def post(port, path, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        num_bytes = 0
        while part := answer.read(1 << 16):
            num_bytes += len(part)
    return num_bytes


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return json.load(answer)


def peak_mib(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def reset_peak(process):
    """The peak counts anew from what the process holds now (Linux)."""
    pathlib.Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def ways(num_tokens, vocab_size, generated):
    """Names and requests; ids are random, so that no prefix is cached."""
    def prompt(seed):
        draw = random.Random(seed)
        return [draw.randrange(1000, vocab_size) for _ in range(num_tokens)]

    def ask(seed, **more):
        return "/v1/completions", {"prompt": prompt(seed), "temperature": 0, "max_tokens": 1, **more}

    plain = ask(1, max_tokens=generated)
    return plain, [
        ("plain, again", ask(2, max_tokens=generated)),
        ("streamed, logprobs 20", ask(3, max_tokens=generated, stream=True, logprobs=20)),
        ("echo, logprobs 0", ask(4, echo=True, logprobs=0, max_tokens=0)),
        ("echo, logprobs 20", ask(5, echo=True, logprobs=20, max_tokens=0)),
        ("echo, logprobs 20, streamed", ask(6, echo=True, logprobs=20, max_tokens=0, stream=True)),
        ("prompt_logprobs 20", ask(7, prompt_logprobs=20)),
        ("score", ("/v1/score", {"query": prompt(8)[:1], "items": [prompt(8)[1:]]})),
    ]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--assay", default=TARGET / "release" / "assay")
    options.add_argument("--model", required=True)
    options.add_argument("--threads", default=2, type=int)
    options.add_argument("--tokens", default=2000, type=int, help="length of the prompt")
    options.add_argument("--generated", default=256, type=int, help="length of a generated reply")
    asked = options.parse_args()
    with ours(asked.assay, asked.model, asked.threads) as server:
        vocab_size = get(server.port, "/tokenizer_info")["vocab_size"]
    buffer_mib = asked.tokens * vocab_size * 4 / 2**20
    plain, scored = ways(asked.tokens, vocab_size, asked.generated)
    print(f"a buffer of {asked.tokens} x {vocab_size} f32 would take {buffer_mib:.0f} MiB")
    print("MiB".rjust(34))
    print(f"{'request':30} {'before':>8} {'peak':>8} {'grown':>8} {'by scores':>10} {'reply':>8}")
    plain_grown, worst = None, 0
    for name, (path, body) in scored:
        with ours(asked.assay, asked.model, asked.threads) as server:
            post(server.port, *plain)
            reset_peak(server.process)
            before = peak_mib(server.process)
            reply_mib = post(server.port, path, body) / 2**20
            after = peak_mib(server.process)
        grown = after - before
        plain_grown = grown if plain_grown is None else plain_grown
        by_scores = grown - plain_grown
        worst = max(worst, by_scores)
        print(f"{name:30} {before:8.1f} {after:8.1f} {grown:8.1f} {by_scores:10.1f} {reply_mib:8.2f}", flush=True)
    sys.exit(worst > buffer_mib / MOST)


if __name__ == "__main__":
    main()
