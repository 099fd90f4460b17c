"""The clients of run.py: streams at once, one first token, requests at a fixed rate. Standard library only."""

import http.client
import json
import random
import statistics
import threading
import time

# How long any one answer may take.
PATIENCE_S = 120


def post(connection, path, body):
    """Sends `body` as JSON; the answer, unread."""
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {answer.read(2000).decode(errors='replace')}")
    return answer


def events(answer):
    """The JSON values of a stream of server-sent events, each as soon as its line is there."""
    for line in answer:
        if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
            yield json.loads(line[6:])


def connect(port):
    return http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)


def run_all(work):
    """Runs functions of no arguments at once, in threads, and returns what they return."""
    results = [None] * len(work)

    def run(index):
        try:
            results[index] = work[index]()
        except Exception as error:  # The thread's failure is the run's.
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def tokens_per_second(port, prompts, max_tokens):
    """Tokens that all `prompts` together get a second, as chats streamed at once, from the first byte to the last."""

    def stream(prompt):
        body = {
            "model": "default",
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        usage = None
        for event in events(post(connect(port), "/v1/chat/completions", body)):
            usage = event.get("usage") or usage
        return usage["completion_tokens"]

    started = time.perf_counter()
    counts = run_all([lambda prompt=prompt: stream(prompt) for prompt in prompts])
    return sum(counts) / (time.perf_counter() - started)


def seconds_to_first_token(port, token_ids):
    """From the request to the first text of its reply."""
    connection = connect(port)
    connection.connect()
    body = {"model": "default", "prompt": token_ids, "max_tokens": 8, "temperature": 0, "stream": True}
    started = time.perf_counter()
    answer = post(connection, "/v1/completions", body)
    first = None
    for event in events(answer):
        # llama.cpp streams native events where a prompt is ids; OpenAI's have `choices`.
        texts = [choice["text"] for choice in event.get("choices", [])] or [event.get("content", "")]
        if first is None and any(texts):
            first = time.perf_counter() - started
    if first is None:
        raise RuntimeError("a reply without text")
    return first


def at_rate(port, path, body, per_second, num_requests, num_connections=16):
    """Sends `num_requests` at random moments, `per_second` on average, whatever the answers take; the clients' median
    seconds, from the moment that a request was due."""
    generator = random.Random(1)
    due, moment = [], 0.0
    for _ in range(num_requests):
        moment += generator.expovariate(per_second)
        due.append(moment)
    text = json.dumps(body)
    queue = iter(due)
    lock = threading.Lock()
    started = time.perf_counter() + 0.1

    def work():
        connection = connect(port)
        connection.connect()
        seconds = []
        while True:
            with lock:
                moment = next(queue, None)
            if moment is None:
                return seconds
            time.sleep(max(0.0, started + moment - time.perf_counter()))
            connection.request("POST", path, text, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{path}: {answer.status}")
            seconds.append(time.perf_counter() - started - moment)

    return statistics.median(sum(run_all([work] * num_connections), []))


class Histogram:
    """One histogram of /metrics: how many observations were at most so many seconds."""

    def __init__(self, port, name):
        connection = connect(port)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        self.buckets = {}
        for line in text.splitlines():
            if line.startswith(name + "_bucket{"):
                labels, count = line.rsplit(" ", 1)
                bound = labels.split('le="')[1].split('"')[0]
                self.buckets[float(bound)] = int(count)
        if not self.buckets:
            raise RuntimeError(f"/metrics has no {name}")

    def since(self, earlier):
        for bound, count in earlier.buckets.items():
            self.buckets[bound] -= count
        return self

    def quantile(self, share):
        """The bucket's upper end that so large a share of the observations does not pass."""
        total = max(self.buckets.values())
        return next(bound for bound, count in sorted(self.buckets.items()) if count >= share * total)
