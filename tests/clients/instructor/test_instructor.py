"""instructor against the real server: typed replies by JSON Schema."""

from typing import Literal

import instructor
from conftest import MODEL
from pydantic import BaseModel, ConfigDict


class Review(BaseModel):
    # An open object may go on with members until its tokens are spent.
    model_config = ConfigDict(extra="forbid")

    sentiment: Literal["good", "bad", "mixed"]
    stars: int
    is_spam: bool


MESSAGES = [{"role": "user", "content": "Review: 'Great tea, friendly people.' Answer as JSON."}]
OPTIONS = {"model": MODEL, "messages": MESSAGES, "max_tokens": 120, "temperature": 0, "max_retries": 0}


def test_a_typed_reply(client):
    typed = instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA)
    review, reply = typed.chat.completions.create_with_completion(response_model=Review, logprobs=True, **OPTIONS)
    assert isinstance(review, Review)
    choice = reply.choices[0]
    assert Review.model_validate_json(choice.message.content).model_dump() == review.model_dump()
    assert "".join(entry.token for entry in choice.logprobs.content) == choice.message.content
