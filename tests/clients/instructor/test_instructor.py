"""instructor against the real server: typed replies by JSON Schema and by JSON mode, whole and partial."""

from typing import Literal

import instructor
import pytest
from conftest import MODEL
from pydantic import BaseModel


class Review(BaseModel):
    sentiment: Literal["good", "bad", "mixed"]
    stars: int
    is_spam: bool


MESSAGES = [{"role": "user", "content": "Review: 'Great tea, friendly people.' Answer as JSON."}]
OPTIONS = {"model": MODEL, "messages": MESSAGES, "max_tokens": 120, "temperature": 0, "max_retries": 0}


@pytest.mark.parametrize("mode", [instructor.Mode.JSON_SCHEMA])
def test_a_typed_reply(client, mode):
    typed = instructor.from_openai(client, mode=mode)
    review, reply = typed.chat.completions.create_with_completion(response_model=Review, logprobs=True, **OPTIONS)
    assert isinstance(review, Review)
    choice = reply.choices[0]
    assert Review.model_validate_json(choice.message.content) == review
    assert "".join(entry.token for entry in choice.logprobs.content) == choice.message.content
