"""anyjev's backend for servers of vLLM's kind: its `Decider` at L0 reads our `/v1/completions`."""

import subprocess
import sys

import numpy as np
import pytest
from anyjev import Decider, Question
from anyjev.backends.vllm import VLLMBackend
from anyjev.readout import build_prompt, map_label_tokens, render_chat
from conftest import BINARY, MODEL, ROOT

STATES = ["I was charged twice for March. Fix this today.", "The app crashes at start.", "What does a year cost?"]
TEAMS = Question.choice("Which team should take this?", ["Billing", "Technical", "Sales"], name="team")
ANGRY = Question.noul("Is the customer angry?", name="angry")


@pytest.fixture(scope="module")
def backend(server, tmp_path_factory):
    """Its users have the tokenizer as a folder; ours is in the model's file."""
    pulled = subprocess.run([BINARY, "pull", MODEL], capture_output=True, text=True, check=True)
    folder = tmp_path_factory.mktemp("tokenizer")
    tool = [sys.executable, ROOT / "tools" / "tokenizer_folder.py", pulled.stdout.strip().splitlines()[-1], folder]
    subprocess.run(tool, check=True)
    return VLLMBackend(server.url, MODEL, tokenizer_name=str(folder))


def echoed(client, backend, state, order):
    """Log-probability of each label's token behind anyjev's prompt, by the echo of prompt and token."""
    tokenizer = backend.tokenizer
    prompt = tokenizer.encode(render_chat(tokenizer, build_prompt(state, TEAMS, order)), add_special_tokens=False)
    ids = map_label_tokens(tokenizer, ["A", "B", "C"])
    reply = client.completions.create(
        model=MODEL, prompt=[[*prompt, id] for id in ids], max_tokens=0, echo=True, logprobs=0
    )
    return np.array([choice.logprobs.token_logprobs[-1] for choice in reply.choices])


def softmax(logprobs):
    weights = np.exp(logprobs - logprobs.max())
    return weights / weights.sum()


def test_what_it_reads_is_the_echo_to_the_bit(client, backend):
    tokenizer = backend.tokenizer
    ids = map_label_tokens(tokenizer, ["A", "B", "C"])
    prompts = [render_chat(tokenizer, build_prompt(state, TEAMS, [0, 1, 2])) for state in STATES]
    read = backend.next_token_logprobs(prompts, [ids] * len(prompts))
    for state, logprobs in zip(STATES, read, strict=True):
        assert logprobs.tolist() == echoed(client, backend, state, [0, 1, 2]).tolist()
    raw = Decider(backend, level="raw").decide(STATES[0], [TEAMS])["team"]
    assert raw.level == "raw"
    np.testing.assert_allclose(raw.probs, softmax(read[0]), rtol=1e-12)


def test_l0_is_the_mean_over_the_shifts(client, backend):
    shifts = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    by_option = np.zeros((3, 3))
    for row, order in enumerate(shifts):
        by_option[row, order] = softmax(echoed(client, backend, STATES[0], order))
    expected = softmax(np.log(by_option).mean(axis=0))
    found = Decider(backend, prior="none").decide(STATES[0], [TEAMS])["team"]
    assert found.level == "L0"
    np.testing.assert_allclose(found.probs, expected, rtol=1e-12)


def test_a_batch_at_l0_with_its_own_prior(backend):
    states = [f"{state} ({number})" for number in range(3) for state in STATES]
    for question in (TEAMS, ANGRY):
        decisions = Decider(backend).decide_batch(states, question)
        again = Decider(backend).decide_batch(states, question)
        for decision, repeated in zip(decisions, again, strict=True):
            assert decision.level == "L0" and abs(decision.probs.sum() - 1) < 1e-12
            assert decision.probs.tolist() == repeated.probs.tolist()
