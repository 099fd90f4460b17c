"""Starts the real server on the real model once, on a free port, for every client test."""

import os
import pathlib
import re
import signal
import subprocess
import threading

import openai
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("ASSAY_TEST_BINARY", ROOT / "target" / "debug" / "assay"))
MODEL = "smollm2-135m-instruct"
START_TIMEOUT_SECONDS = 120


class Server:
    def __init__(self, *flags):
        self.process = subprocess.Popen(
            [BINARY, "serve", "--model", MODEL, "--port", "0", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={key: value for key, value in os.environ.items() if not key.startswith("ASSAY_")},
        )
        self.log = []
        self.url = None
        ready = threading.Event()

        def read_log():
            for line in self.process.stdout:
                self.log.append(line)
                match = re.search(r"http://[0-9.]+:[1-9][0-9]*", line)
                if match and not self.url:
                    self.url = match.group()
                    ready.set()
            ready.set()

        threading.Thread(target=read_log, daemon=True).start()
        ready.wait(START_TIMEOUT_SECONDS)
        assert self.url, "the server did not start:\n" + "".join(self.log)

    def client(self, **options):
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=options.pop("api_key", "none"), max_retries=0, **options)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


@pytest.fixture(scope="session")
def server():
    running = Server()
    yield running
    assert running.stop() == 0, "".join(running.log)


@pytest.fixture(scope="session")
def client(server):
    return server.client()
