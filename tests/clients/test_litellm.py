"""LiteLLM's OpenAI provider against the real server: chat and text completions with their log-probabilities."""

import litellm
import pytest
from conftest import MODEL

PROMPT = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture()
def options(server):
    return {"api_base": f"{server.url}/v1", "api_key": "none", "max_tokens": 16, "temperature": 0, "num_retries": 0}


def test_chat(options):
    reply = litellm.completion(f"openai/{MODEL}", PROMPT, logprobs=True, top_logprobs=2, **options)
    choice = reply.choices[0]
    entries = choice.logprobs.content
    assert "".join(entry.token for entry in entries) == choice.message.content
    stream = litellm.completion(f"openai/{MODEL}", PROMPT, stream=True, **options)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == choice.message.content


def test_text_completion(options):
    reply = litellm.text_completion(model=f"text-completion-openai/{MODEL}", prompt="One, two,", logprobs=2, **options)
    choice = reply.choices[0]
    assert "".join(choice.logprobs.tokens) == choice.text
    assert all(len(top) >= 2 for top in choice.logprobs.top_logprobs)


def test_a_bad_request_is_named(options):
    with pytest.raises(litellm.BadRequestError, match="top_logprobs"):
        litellm.completion(f"openai/{MODEL}", PROMPT, logprobs=True, top_logprobs=21, **options)
