"""Typed decisions through their own clients: the OpenAI SDK, the System One SDK and its conformance suites."""

import json
import math
import pathlib
import subprocess
import sys

import jevbench
import pytest
import typesafe_sdk
from typesafe_sdk import Choice, Noul, Score, TypeSafeClient

from conftest import MODEL

STATE = "I was charged twice for March and nobody answers my mails. Fix this today."
TEAMS = {"Billing": "Payments and refunds", "Technical": "Bugs and outages", "Sales": None}


def teams():
    described = [{"value": name, "description": text} if text else {"value": name} for name, text in TEAMS.items()]
    return {"type": "choice", "name": "team", "instructions": "Which team?", "choices": described}


@pytest.fixture(scope="module")
def system_one(server):
    with TypeSafeClient(api_key="none", base_url=server.url) as sdk:
        yield sdk


def test_openai_decisions(client):
    levels = [{"label": "calm"}, {"label": "cross", "description": "complains"}, {"label": "furious"}]
    reply = client.decisions.create(
        model=MODEL,
        input=STATE,
        questions=[
            {"type": "predicate", "instructions": "Is the customer asking for money back?"},
            teams(),
            {"type": "choice", "instructions": "Is it so?", "choices": [{"value": True}, {"value": "maybe"}]},
            {"type": "score", "instructions": "How angry is the customer?", "levels": levels},
        ],
    )
    predicate, team, flag, anger = reply.answers
    assert predicate.type == "predicate" and 0 < predicate.probability < 1 and predicate.name is None
    assert team.name == "team" and team.choice in TEAMS
    assert [p.value for p in flag.probabilities] == [True, "maybe"]
    for answer in (team, flag, anger):
        assert math.isclose(sum(p.probability for p in answer.probabilities), 1, abs_tol=1e-12)
    assert [(p.value, p.label) for p in anger.probabilities] == [(0, "calm"), (1, "cross"), (2, "furious")]
    assert math.isclose(anger.score, sum(p.value * p.probability for p in anger.probabilities), abs_tol=1e-12)
    usage = reply.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.output_tokens_details.reasoning_tokens == 0


def test_both_sdks_read_the_same_bits(client, system_one):
    questions = {
        "refund": Noul(instructions="Is the customer asking for money back?"),
        "team": Choice(instructions="Which team?", criteria=TEAMS),
    }
    # Long enough for the SDK to compress the body.
    state = STATE + " Please." * 300
    typed = system_one.system_one(state=state, questions=questions, model=MODEL)
    reply = client.decisions.create(
        model=MODEL,
        input=state,
        questions=[{"type": "predicate", "instructions": "Is the customer asking for money back?"}, teams()],
    )
    assert typed.nouls["refund"].noul == reply.answers[0].probability
    assert list(typed.choices["team"].probabilities.items()) == [
        (p.value, p.probability) for p in reply.answers[1].probabilities
    ]
    assert typed.choices["team"].confidence == reply.answers[1].confidence


def test_system_one_scores_and_errors(system_one):
    levels = ["Calm", {"label": "Cross"}, "Furious"]
    typed = system_one.system_one(
        state={"mail": STATE, "id": 4471}, questions={"anger": Score(instructions="How angry?", criteria=levels)}
    )
    answer = typed.scores["anger"]
    assert list(answer.legend.values()) == levels
    assert math.isclose(answer.score, sum(int(k) * p for k, p in answer.probabilities.items()), abs_tol=1e-12)
    with pytest.raises(typesafe_sdk.TypeSafeUnprocessableEntityError) as caught:
        one = Choice(instructions="Which?", criteria={"one": None})
        system_one.system_one(state="x", questions={"team": one})
    assert caught.value.body["detail"][0]["loc"] == ["body", "questions", "team", "criteria"]
    assert caught.value.request_id


def run(*arguments):
    finished = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=1_800)
    return finished.returncode, finished.stdout + finished.stderr


@pytest.mark.parametrize("key", [None, "secret"])
def test_jevcompat_finds_nothing(server, key, tmp_path):
    """Every requirement with a key; without one those of the key are not there to be tested."""
    running = type(server)("--api-key", key) if key else server
    report = tmp_path / "report.json"
    code, output = run(
        "jevcompat.cli", "test", running.url, *(["--key", key] if key else []), "--json", str(report), "--timeout", "600"
    )
    if key:
        running.stop()
    results = json.loads(report.read_text())["results"]
    failed = [r for r in results if r["status"] == "fail"]
    assert not failed, output
    if key:
        skipped = {r["id"] for r in results if r["status"] != "pass"}
        assert skipped == {"auth.ignored-when-off"}, output
    else:
        assert code == 0, output


def test_jevbench_examples_are_isolated_and_repeat(server, tmp_path):
    url = f"{server.url}/v1/systemone"
    report = tmp_path / "report.json"
    code, output = run(
        "jevbench", "eval", "--url", url, "--model", MODEL, "--suite", "examples", "--out", str(report), "--no-cache"
    )
    assert code == 0, output
    scores = json.loads(report.read_text())["scores"]
    assert scores["pillars"]["BAT"] == 1, output
    cases = pathlib.Path(jevbench.__file__).parent / "suites/examples/cases.jsonl"
    repeated = tmp_path / "repeated.json"
    code, output = run(
        "jevbench", "run", "--cases", str(cases), "--backend", f"systemone:{MODEL}", "--url", url, "--repeats", "3",
        "--relations", "key_rename,batch_solo,batch_order,duplicate_question", "--out", str(repeated), "--no-cache",
    )
    assert code == 0, output
    noise = [v for base in json.loads(repeated.read_text())["bases"].values() for v in base["noise"].values()]
    # It compares with a mean of three, which rounds.
    assert noise and max(noise) < 1e-15, noise
