"""langchain-openai against the real server: invoke, batch, stream, structured output, the log-probabilities it keeps."""

import math
from typing import Literal

import pytest
from conftest import MODEL
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel


class Animal(BaseModel):
    kind: Literal["fish", "mammal", "bird"]
    can_fly: bool


@pytest.fixture(scope="module")
def chat(server):
    options = {"max_tokens": 24, "temperature": 0, "logprobs": True, "top_logprobs": 3}
    return ChatOpenAI(base_url=f"{server.url}/v1", api_key="none", model=MODEL, max_retries=0, **options)


def entries_of(message):
    return message.response_metadata["logprobs"]["content"]


def test_invoke_keeps_the_entries(chat):
    reply = chat.invoke("What is the capital of France?")
    entries = entries_of(reply)
    assert "".join(entry["token"] for entry in entries) == reply.content
    assert all(len(entry["top_logprobs"]) == 3 and entry["logprob"] <= 0 for entry in entries)
    assert reply.usage_metadata["output_tokens"] >= len(entries) > 0


def test_a_batch_gives_each_its_own(chat):
    prompts = ["What is 2 + 2?", "Name a colour.", "Why is the sky blue?", "Repeat: 日本語 🙂"] * 2
    together = chat.batch(prompts, config={"max_concurrency": 8})
    for prompt, reply in zip(prompts, together):
        alone = chat.invoke(prompt)
        assert reply.content == alone.content
        assert entries_of(reply) == entries_of(alone)


def test_the_stream_spells_the_same(chat):
    prompt = "Tell me about cats."
    whole = chat.invoke(prompt)
    text, entries = "", []
    for chunk in chat.stream(prompt):
        found = chunk.response_metadata.get("logprobs") or {"content": []}
        assert "".join(entry["token"] for entry in found["content"]) == chunk.content
        text += chunk.content
        entries += found["content"]
    assert text == whole.content
    assert entries == entries_of(whole)


def test_structured_output(chat):
    structured = chat.model_copy(update={"max_tokens": 200}).with_structured_output(Animal, method="json_schema", include_raw=True)
    reply = structured.invoke("A whale. Answer as JSON.")
    assert reply["parsing_error"] is None
    assert isinstance(reply["parsed"], Animal)
    entries = entries_of(reply["raw"])
    assert "".join(entry["token"] for entry in entries) == reply["raw"].content
    assert all(math.isfinite(entry["logprob"]) for entry in entries)


def test_completions(server):
    model = OpenAI(base_url=f"{server.url}/v1", api_key="none", model=MODEL, max_retries=0, max_tokens=8, temperature=0)
    first, second = model.batch(["The capital of France is", "One, two, three,"])
    assert first and second
    assert "".join(model.stream("The capital of France is")) == first
