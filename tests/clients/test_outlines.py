"""outlines against the real server: as an OpenAI server (json_schema) and as one that takes `structured_outputs`."""

import json
import re
from typing import Literal

import outlines
import pytest
from conftest import MODEL
from outlines.types import CFG, Regex
from pydantic import BaseModel, ConfigDict


class Person(BaseModel):
    # An open object may go on with members until its tokens are spent.
    model_config = ConfigDict(extra="forbid")

    name: Literal["Ada", "Grace", "Alan"]
    age: int
    likes_tea: bool


@pytest.fixture(scope="module")
def by_response_format(client):
    return outlines.from_openai(client, MODEL)


@pytest.fixture(scope="module")
def by_structured_outputs(client):
    return outlines.from_vllm(client, MODEL)


OPTIONS = {"max_tokens": 120, "temperature": 0}


def test_a_type_by_response_format(by_response_format):
    text = by_response_format("Describe a person as JSON.", Person, **OPTIONS)
    Person.model_validate_json(text)


@pytest.mark.parametrize(
    ("output_type", "check"),
    [
        (Person, Person.model_validate_json),
        (Literal["yes", "no", "it depends"], lambda text: {"yes", "no", "it depends"}.issuperset({text}) or 1 / 0),
        (Regex(r"[0-9]{3}-[0-9]{4}"), lambda text: re.fullmatch(r"[0-9]{3}-[0-9]{4}", text).group()),
        (int, int),
        (CFG('start: "a" | "b" start "c"'), lambda text: re.fullmatch("(b*)a(c*)", text).group()),
    ],
    ids=["json", "choice", "regex", "int", "grammar"],
)
def test_types_by_structured_outputs(by_structured_outputs, output_type, check):
    check(by_structured_outputs("Is a whale a fish?", output_type, **OPTIONS))


def test_a_stream_is_the_same_text(by_structured_outputs):
    whole = by_structured_outputs("A person, please.", Person, **OPTIONS)
    pieces = list(by_structured_outputs.stream("A person, please.", Person, **OPTIONS))
    assert "".join(pieces) == whole
    json.loads(whole)
