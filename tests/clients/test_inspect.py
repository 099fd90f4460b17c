"""inspect-ai's providers against the real server: an evaluation with log-probabilities, and scored prompts."""

import math

import pytest
from conftest import MODEL
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

QUESTIONS = [
    Sample(input="What is 2 + 2?", choices=["3", "4", "5"], target="B"),
    Sample(input="Which is a colour?", choices=["red", "run", "ten"], target="A"),
    Sample(input="Which swims?", choices=["stone", "bird", "fish"], target="C"),
    Sample(input="Which is cold?", choices=["ice", "fire", "sun"], target="A"),
]


def model_of(server, provider, **config):
    config = GenerateConfig(temperature=0, max_connections=4, max_retries=0, **config)
    return get_model(f"{provider}/local/{MODEL}", base_url=f"{server.url}/v1", api_key="none", config=config, memoize=False)


def test_an_evaluation_keeps_the_entries(server, tmp_path):
    task = Task(dataset=QUESTIONS, solver=multiple_choice(), scorer=choice())
    model = model_of(server, "openai-api", max_tokens=16, logprobs=True, top_logprobs=5)
    [log] = eval(task, model=model, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    assert len(log.samples) == len(QUESTIONS)
    for sample in log.samples:
        reply = sample.output.choices[0]
        entries = reply.logprobs.content
        assert "".join(entry.token for entry in entries) == reply.message.text
        assert all(len(entry.top_logprobs) == 5 for entry in entries)


@pytest.mark.anyio
async def test_scored_prompts(server):
    model = model_of(server, "openai-api-completions", max_tokens=1, prompt_logprobs=1)
    reply = await model.generate([ChatMessageUser(content="The whale is a mammal.")])
    scored = reply.choices[0].prompt_logprobs.content
    assert len(scored) >= 5
    assert all(math.isfinite(entry.logprob) for entry in scored)


@pytest.fixture
def anyio_backend():
    return "asyncio"
