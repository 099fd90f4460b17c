"""The official OpenAI SDK against the real server: chat, streaming, log-probabilities, errors."""

import math
import threading

import openai
import pytest

from conftest import MODEL, Server

PROMPTS = [
    "Name three primary colours.",
    "Write a Python function that adds two numbers.",
    "Was ist die Hauptstadt von Frankreich?",
    "Repeat after me: 日本語 🙂",
    "What is 2 + 2?",
    "Tell me a very short story about a cat.",
    "List the planets of the solar system.",
    "Why is the sky blue?",
]


def ask(client, prompt, **options):
    options = {"max_tokens": 24, "temperature": 0, "logprobs": True, "top_logprobs": 5, **options}
    messages = [{"role": "user", "content": prompt}]
    return client.chat.completions.create(model=MODEL, messages=messages, **options)


def collect(stream):
    """Text, entries and finish reason of a stream, checking that each chunk's entries spell its delta."""
    text, entries, finish = "", [], None
    for chunk in stream:
        for choice in chunk.choices:
            delta = choice.delta.content or ""
            found = choice.logprobs.content if choice.logprobs else []
            assert "".join(entry.token for entry in found) == delta
            text += delta
            entries += found
            finish = choice.finish_reason or finish
    return text, entries, finish


def as_values(entries):
    return [entry.model_dump() for entry in entries]


def test_models_are_listed(client):
    ids = [model.id for model in client.models.list()]
    assert MODEL in ids
    assert client.models.retrieve(MODEL).id == MODEL


def test_chat_entries_spell_the_reply(client):
    reply = ask(client, PROMPTS[0])
    choice = reply.choices[0]
    entries = choice.logprobs.content
    assert "".join(entry.token for entry in entries) == choice.message.content
    assert bytes(byte for entry in entries for byte in entry.bytes).decode() == choice.message.content
    for entry in entries:
        assert entry.logprob <= 0 and len(entry.top_logprobs) == 5
        values = [top.logprob for top in entry.top_logprobs]
        assert values == sorted(values, reverse=True)
        # Greedy: the chosen token leads its list with the same value.
        assert entry.top_logprobs[0].token == entry.token
        assert entry.top_logprobs[0].logprob == entry.logprob
        assert sum(math.exp(value) for value in values) <= 1 + 1e-9
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert reply.system_fingerprint


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_stream_collects_to_the_unstreamed_reply(client, prompt):
    whole = ask(client, prompt).choices[0]
    text, entries, finish = collect(ask(client, prompt, stream=True))
    assert (text, finish) == (whole.message.content, whole.finish_reason)
    assert as_values(entries) == as_values(whole.logprobs.content)


def test_usage_rides_in_a_last_chunk_without_choices(client):
    chunks = list(ask(client, PROMPTS[4], stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens > 0
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_eight_at_once_give_what_each_gives_alone(client):
    alone = [ask(client, prompt, seed=7, temperature=0.8).choices[0] for prompt in PROMPTS]
    together = [None] * len(PROMPTS)

    def run(index):
        together[index] = ask(client, PROMPTS[index], seed=7, temperature=0.8).choices[0]

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(PROMPTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together):
        assert other.message.content == one.message.content
        assert as_values(other.logprobs.content) == as_values(one.logprobs.content)


def test_choices_have_their_own_random_streams(client):
    reply = ask(client, PROMPTS[5], n=3, seed=1, temperature=1.0, logprobs=None, top_logprobs=None)
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in reply.choices}) > 1
    again = ask(client, PROMPTS[5], n=3, seed=1, temperature=1.0, logprobs=None, top_logprobs=None)
    assert [c.message.content for c in again.choices] == [c.message.content for c in reply.choices]


def test_a_stop_string_is_cut_with_its_entries(client):
    whole = ask(client, PROMPTS[0]).choices[0].message.content
    stop = whole[8:11]
    choice = ask(client, PROMPTS[0], stop=[stop]).choices[0]
    assert choice.message.content == whole[: whole.index(stop)]
    assert "".join(entry.token for entry in choice.logprobs.content) == choice.message.content
    assert choice.finish_reason == "stop"


@pytest.mark.parametrize(
    "options, param",
    [
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"top_logprobs": -1}, "top_logprobs"),
        ({"temperature": -1}, "temperature"),
        ({"n": 0}, "n"),
        ({"logit_bias": {"999999": 1}}, "logit_bias"),
        ({"max_tokens": 1_000_000}, "max_tokens"),
        ({"extra_body": {"seed": "7"}}, "seed"),
    ],
)
def test_bad_values_are_400_naming_the_field(client, options, param):
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as caught:
            ask(client, "hi", stream=stream, **options)
        assert caught.value.param is not None and caught.value.param.startswith(param), caught.value


def test_an_unknown_model_is_404(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hi"}])
    assert caught.value.code == "model_not_found"


def test_a_restart_with_a_key_gives_the_same_bits(client):
    before = ask(client, PROMPTS[7]).choices[0]
    other = Server("--api-key", "secret", "--threads", "1")
    try:
        with pytest.raises(openai.AuthenticationError):
            ask(other.client(api_key="wrong"), "hi")
        after = ask(other.client(api_key="secret"), PROMPTS[7]).choices[0]
    finally:
        assert other.stop() == 0
    assert as_values(after.logprobs.content) == as_values(before.logprobs.content)
