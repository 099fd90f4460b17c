"""The official OpenAI SDK against the real server: text completions, echoed prompts, scores."""

import math

import openai
import pytest

from conftest import MODEL

TEXTS = [
    "The capital of France is Paris.",
    "Ist das so? Ja, und 日本語 🙂.",
    "def add(a, b):\n    return a + b\n",
]


def complete(client, prompt, **options):
    options = {"max_tokens": 8, "temperature": 0, "logprobs": 3, **options}
    return client.completions.create(model=MODEL, prompt=prompt, **options)


def tokens_of(client, text):
    root = str(client.base_url).removesuffix("/v1/")
    return client.post(f"{root}/tokenize", body={"prompt": text}, cast_to=object)["tokens"]


def check_arrays(choice, first_is_null):
    arrays = choice.logprobs
    sizes = {len(each) for each in (arrays.tokens, arrays.token_logprobs, arrays.top_logprobs, arrays.text_offset)}
    assert len(sizes) == 1
    assert "".join(arrays.tokens) == choice.text
    assert (arrays.token_logprobs[0] is None) == first_is_null
    for value, top in zip(arrays.token_logprobs[first_is_null:], arrays.top_logprobs[first_is_null:]):
        assert value <= 0 and value in top.values()
        assert sum(math.exp(one) for one in top.values()) <= 1 + 1e-9
    for index, offset in enumerate(arrays.text_offset[1:]):
        assert offset - arrays.text_offset[index] == len(arrays.tokens[index])


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("max_tokens", [0, 1, 8])
def test_an_echoed_prompt_is_the_prompt_with_its_scores(client, text, max_tokens):
    by_text = complete(client, text, echo=True, max_tokens=max_tokens).choices[0]
    check_arrays(by_text, first_is_null=True)
    assert by_text.text.startswith(text)
    by_ids = complete(client, tokens_of(client, text), echo=True, max_tokens=max_tokens).choices[0]
    assert by_ids.model_dump() == by_text.model_dump()


def test_a_batch_answers_each_prompt_as_alone(client):
    together = complete(client, TEXTS).choices
    assert [choice.index for choice in together] == [0, 1, 2]
    for text, choice in zip(TEXTS, together):
        alone = complete(client, text).choices[0]
        check_arrays(alone, first_is_null=False)
        assert alone.logprobs.text_offset[0] == len(text)
        assert (alone.text, alone.logprobs) == (choice.text, choice.logprobs)


@pytest.mark.parametrize("echo", [False, True])
def test_a_stream_collects_to_the_unstreamed_completion(client, echo):
    whole = complete(client, TEXTS[1], echo=echo).choices[0]
    text, tokens, values, offsets, finish = "", [], [], [], None
    for chunk in complete(client, TEXTS[1], echo=echo, stream=True):
        for piece in chunk.choices:
            text += piece.text
            if piece.logprobs:
                assert "".join(piece.logprobs.tokens) == piece.text
                tokens += piece.logprobs.tokens
                values += piece.logprobs.token_logprobs
                offsets += piece.logprobs.text_offset
            finish = piece.finish_reason or finish
    assert (text, finish) == (whole.text, whole.finish_reason)
    assert (tokens, values) == (whole.logprobs.tokens, whole.logprobs.token_logprobs)
    assert offsets == whole.logprobs.text_offset


def test_scores_are_the_sums_of_an_echo(client):
    query, items = "The capital of France is", [" Paris", " Berlin", " a city of love"]
    scores = client.post("/score", body={"query": query, "items": items}, cast_to=object)
    begin = len(tokens_of(client, query))
    for item, score in zip(items, scores["data"]):
        whole = tokens_of(client, query) + tokens_of(client, item)
        echoed = complete(client, whole, echo=True, max_tokens=0).choices[0].logprobs.token_logprobs
        assert score["token_logprobs"] == echoed[begin:]
        assert score["logprob"] == sum(echoed[begin:])
    best = max(scores["data"], key=lambda score: score["logprob"])
    assert items[best["index"]] == " Paris"


@pytest.mark.parametrize(
    "options, param",
    [
        ({"logprobs": 21}, "logprobs"),
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 3}, "best_of"),
        ({"max_tokens": 1_000_000}, "max_tokens"),
        ({"prompt": [999_999]}, "prompt"),
        ({"prompt": ""}, "prompt"),
    ],
)
def test_bad_values_are_400_naming_the_field(client, options, param):
    options = {"prompt": "hi", **options}
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as caught:
            complete(client, stream=stream, **options)
        assert caught.value.param == param, caught.value
