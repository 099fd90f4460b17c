"""The official OpenAI SDK's Responses API against the real server."""

import openai
import pytest

from conftest import MODEL

INCLUDE = ["message.output_text.logprobs"]


def respond(client, **options):
    options = {"input": "What is the capital of France?", "temperature": 0, "max_output_tokens": 24, **options}
    return client.responses.create(model=MODEL, **options)


def test_text_and_entries_are_those_of_a_chat(client):
    reply = respond(client, include=INCLUDE, top_logprobs=5)
    chat = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        temperature=0,
        max_tokens=24,
        logprobs=True,
        top_logprobs=5,
    )
    assert reply.output_text == chat.choices[0].message.content
    entries = reply.output[0].content[0].logprobs
    assert [(e.token, e.logprob) for e in entries] == [
        (e.token, e.logprob) for e in chat.choices[0].logprobs.content
    ]
    assert reply.status == "completed" and reply.usage.input_tokens == chat.usage.prompt_tokens


def test_a_stream_ends_with_the_whole_reply(client):
    whole = respond(client, include=INCLUDE)
    text, entries, last = "", [], None
    for event in respond(client, include=INCLUDE, stream=True):
        if event.type == "response.output_text.delta":
            text += event.delta
            entries += event.logprobs
        last = event
    assert last.type == "response.completed"
    assert last.response.output_text == text == whole.output_text
    assert [e.logprob for e in entries] == [e.logprob for e in whole.output[0].content[0].logprobs]


def test_state_is_refused(client):
    with pytest.raises(openai.BadRequestError) as caught:
        respond(client, previous_response_id="resp_1")
    assert caught.value.param == "previous_response_id"
