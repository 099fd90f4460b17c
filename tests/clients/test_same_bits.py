"""One question, asked by everything that can ask it: every figure has the same bits."""

import csv
import json
import math
import subprocess

import litellm
import pytest
import requests
from conftest import BINARY, MODEL
from typesafe_sdk import Choice, TypeSafeClient

STATE = 'I was charged twice for March; "nobody" answers my mails. Zürich, 2 Mai 🙂'
ASKED = "Which team should take this?"
TEAMS = ["Billing", "Technical support", "Sales", "1", "11"]
OPENAI_QUESTION = {"type": "choice", "name": "team", "instructions": ASKED, "choices": [{"value": team} for team in TEAMS]}


@pytest.fixture(scope="module")
def expected(server):
    """The answer of `/v1/decisions` with each label's path."""
    body = {"model": MODEL, "input": STATE, "questions": [OPENAI_QUESTION], "diagnostics": True}
    reply = requests.post(f"{server.url}/v1/decisions", json=body, timeout=300)
    assert reply.status_code == 200, reply.text
    return reply.json()["answers"][0]


def probabilities(answer):
    return [one["probability"] for one in answer["probabilities"]]


def test_openai_client(client, expected):
    answer = client.decisions.create(model=MODEL, input=STATE, questions=[OPENAI_QUESTION]).answers[0]
    assert [one.probability for one in answer.probabilities] == probabilities(expected)
    assert (answer.choice, answer.confidence) == (expected["choice"], expected["confidence"])


def test_system_one_client(server, expected):
    with TypeSafeClient(api_key="none", base_url=server.url) as client:
        question = Choice(instructions=ASKED, criteria=dict.fromkeys(TEAMS))
        answer = client.system_one(state=STATE, questions={"x": question}, model=MODEL).choices["x"]
    assert list(answer.probabilities.values()) == probabilities(expected)
    assert (answer.choice, answer.confidence) == (expected["choice"], expected["confidence"])


def test_json_schema(server, expected):
    body = {"model": MODEL, "state": STATE, "schema": {"enum": TEAMS, "description": ASKED}}
    reply = requests.post(f"{server.url}/v1/decide", json=body, timeout=300).json()
    field = reply["fields"][0]
    assert [one["probability"] for one in field["distribution"]] == probabilities(expected)
    assert field["label_mass"] == expected["label_mass"]


@pytest.mark.parametrize("provider", ["openai", "typesafe"])
def test_litellm_translates_both_ways(server, expected, provider):
    """Both providers take both request formats; LiteLLM translates where the provider speaks the other."""
    where = {"model": f"{provider}/{MODEL}", "api_base": server.url, "api_key": "none", "num_retries": 0}
    answer = litellm.decisions(**where, input=STATE, questions=[OPENAI_QUESTION]).answers[0]
    assert [one.probability for one in answer.probabilities] == probabilities(expected)
    assert (answer.choice, answer.confidence) == (expected["choice"], expected["confidence"])
    question = {"type": "choice", "instructions": ASKED, "criteria": dict.fromkeys(TEAMS)}
    answer = litellm.systemone(**where, state=STATE, questions={"x": question}).answers["x"]
    assert [answer.probabilities[team] for team in TEAMS] == probabilities(expected)
    assert (answer.choice, answer.confidence) == (expected["choice"], expected["confidence"])


def test_completions_echo_gives_each_step(server, expected):
    options = "\n".join(f"- {team}" for team in TEAMS)
    content = f"Text: {STATE}\n\nQuestion: {ASKED}\nOptions:\n{options}\n\nReply with one of the options only."
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}], "add_generation_prompt": True}
    prompt = requests.post(f"{server.url}/tokenize", json=body, timeout=300).json()["tokens"]
    diagnostics = expected["diagnostics"]
    assert len(prompt) == diagnostics["prompt_tokens"]
    paths = [label["token_ids"] for label in diagnostics["labels"]]
    body = {"model": MODEL, "prompt": [prompt + path for path in paths], "max_tokens": 0, "echo": True, "logprobs": 0}
    reply = requests.post(f"{server.url}/v1/completions", json=body, timeout=300).json()
    joints = []
    for label, path, choice in zip(diagnostics["labels"], paths, reply["choices"], strict=True):
        steps = choice["logprobs"]["token_logprobs"][-len(path) :]
        assert steps == label["logprobs"][:-1], label["label"]
        # The last step is the end's: the sum of several tokens' probabilities, so no echo shows it alone.
        joint = 0.0
        for step in [*steps, label["logprobs"][-1]]:
            joint += step
        assert joint == label["logprob"]
        joints.append(joint)
    mass = math.fsum(map(math.exp, joints))
    assert math.isclose(mass, diagnostics["label_mass"], rel_tol=1e-12)
    for joint, probability in zip(joints, probabilities(expected), strict=True):
        assert math.isclose(math.exp(joint) / mass, probability, rel_tol=1e-12)


@pytest.mark.parametrize("where", ["in process", "--url"])
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_command_line(server, expected, tmp_path, where, form):
    if where == "in process" and form == "csv":
        pytest.skip("the rows' form is not the model's affair; --url has it")
    questions, rows = tmp_path / "questions.json", tmp_path / f"rows.{form}"
    questions.write_text(json.dumps([OPENAI_QUESTION]))
    if form == "csv":
        with rows.open("w", newline="") as file:
            csv.writer(file).writerows([["id", "text"], ["1", STATE]])
    else:
        rows.write_text(json.dumps({"id": 1, "text": STATE}) + "\n")
    asked = ["--url", server.url] if where == "--url" else ["--model", MODEL]
    command = [BINARY, "decide", "--questions", questions, "--field", "text", rows, *asked]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert finished.returncode == 0, finished.stderr
    answer = json.loads(finished.stdout)["answers"][0]
    assert answer["probabilities"] == expected["probabilities"]
    assert answer["label_mass"] == expected["label_mass"]
