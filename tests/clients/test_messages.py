"""The official Anthropic SDK against the real server: messages, streaming, counts, errors."""

import anthropic
import pytest

from conftest import MODEL, Server

ASKED = [{"role": "user", "content": "What is the capital of France? Answer in one short sentence."}]

# The SDK itself knows no sampling parameters.
GREEDY = {"temperature": 0}


def messages_client(server, **options):
    return anthropic.Anthropic(base_url=server.url, api_key=options.pop("api_key", "none"), max_retries=0, **options)


@pytest.fixture(scope="module")
def claude(server):
    return messages_client(server)


def ask(claude, messages=ASKED, **options):
    options = {"max_tokens": 24, "extra_body": GREEDY, **options}
    return claude.messages.create(model=MODEL, messages=messages, **options)


def test_a_message_says_what_a_chat_says(claude, client):
    message = ask(claude)
    chat = client.chat.completions.create(model=MODEL, messages=ASKED, max_tokens=24, temperature=0)
    assert [block.type for block in message.content] == ["text"]
    assert message.content[0].text == chat.choices[0].message.content
    assert message.stop_reason == "end_turn" and message.stop_sequence is None
    prompt_tokens = message.usage.input_tokens + message.usage.cache_read_input_tokens
    assert prompt_tokens == chat.usage.prompt_tokens
    assert message.usage.output_tokens == chat.usage.completion_tokens


def test_a_stream_adds_up_to_the_message(claude):
    whole = ask(claude)
    with claude.messages.stream(model=MODEL, messages=ASKED, max_tokens=24, extra_body=GREEDY) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text
    assert [block.model_dump() for block in final.content] == [block.model_dump() for block in whole.content]
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_system_blocks_and_earlier_turns(claude):
    turns = [
        {"role": "user", "content": [{"type": "text", "text": "Hello."}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Hello! How can I help?"}]},
        {"role": "user", "content": "Say one word."},
    ]
    system = [{"type": "text", "text": "You are terse.", "cache_control": {"type": "ephemeral"}}]
    counted = claude.messages.count_tokens(model=MODEL, messages=turns, system=system)
    message = ask(claude, turns, system=system, max_tokens=4)
    assert counted.input_tokens == message.usage.input_tokens + message.usage.cache_read_input_tokens


def test_limits_and_stop_sequences_end_a_message(claude):
    cut = ask(claude, max_tokens=3)
    assert cut.stop_reason == "max_tokens" and cut.usage.output_tokens == 3
    stopped = ask(claude, stop_sequences=["France"])
    assert stopped.stop_reason == "stop_sequence" and stopped.stop_sequence == "France"
    assert "France" not in stopped.content[0].text


def test_errors_are_the_sdks_own(claude):
    with pytest.raises(anthropic.BadRequestError) as raised:
        ask(claude, extra_body={"temperature": 3})
    assert raised.value.body["type"] == "error"
    assert raised.value.body["error"]["type"] == "invalid_request_error"
    assert "temperature" in raised.value.body["error"]["message"]
    with pytest.raises(anthropic.NotFoundError) as raised:
        claude.messages.create(model="other", messages=ASKED, max_tokens=1)
    assert raised.value.body["error"]["type"] == "not_found_error"
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    with pytest.raises(anthropic.BadRequestError) as raised:
        ask(claude, [{"role": "user", "content": [image]}])
    assert "messages[0].content[0]" in raised.value.body["error"]["message"]


def test_the_key_goes_in_the_sdks_header():
    server = Server("--api-key", "secret")
    try:
        assert ask(messages_client(server, api_key="secret"), max_tokens=1).usage.output_tokens == 1
        with pytest.raises(anthropic.AuthenticationError) as raised:
            ask(messages_client(server, api_key="wrong"), max_tokens=1)
        assert raised.value.body["error"]["type"] == "authentication_error"
    finally:
        assert server.stop() == 0
