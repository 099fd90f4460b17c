"""structured-logprobs on replies of the real server: each value of the JSON has the log-probability of its tokens."""

import math

from conftest import MODEL
from structured_logprobs.main import add_logprobs, add_logprobs_inline

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Paris", "Berlin", "Rome"]},
        "sure": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["old", "new"]}, "minItems": 2, "maxItems": 2},
    },
    "required": ["city", "sure", "tags"],
    "additionalProperties": False,
}


def ask(client):
    return client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "The capital of France, as JSON."}],
        response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}},
        max_tokens=120,
        temperature=0,
        logprobs=True,
    )


def test_values_have_their_log_probabilities(client):
    reply = ask(client)
    scored = add_logprobs(reply).log_probs[0]
    assert set(scored) == {"city", "sure", "tags"}
    numbers = [scored["city"], *scored["tags"]]  # it has none for booleans
    assert all(math.isfinite(number) and number <= 0 for number in numbers)
    total = sum(entry.logprob for entry in reply.choices[0].logprobs.content)
    assert sum(numbers) >= total


def test_they_are_the_same_inline(client):
    beside = add_logprobs(ask(client)).log_probs[0]
    inline = add_logprobs_inline(ask(client)).choices[0].message.content
    assert f'"city_logprob": {beside["city"]!r}' in inline
