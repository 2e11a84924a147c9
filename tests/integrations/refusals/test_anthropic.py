"""Tests what the fake of Anthropic refuses, as the official SDK sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic

from tests.fakes.dialects.anthropic import FAKE
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Call, Story
from tests.tables.cases import stored, tabled

Json = dict[str, Any]
SIGNED = "c2lnbmVkIGJ5IHRoZSBmYWtl"
STORY = Story(text="ok", reasoning="I think.", signature=SIGNED, calls=(Call("toolu_1", "weather", {}),))
USER: Json = {"role": "user", "content": "Hello"}
THOUGHT: Json = {"type": "thinking", "thinking": "I think.", "signature": SIGNED}


def says(role: str, *blocks: Json) -> Json:
    return {"role": role, "content": list(blocks)}


def text(words: str, **fields: Any) -> Json:
    return {"type": "text", "text": words, **fields}


def answered(schema: Json) -> Json:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


# By rule: what is changed in a request that Anthropic takes, and a part of the error. `betas` go into the header.
REFUSED: dict[str, list[tuple[Json, str]]] = stored(__file__, "REFUSED")
CASES = [(rule, change, words) for rule, cases in REFUSED.items() for change, words in cases]


@pytest.fixture
def client(server: DialectServer) -> Iterator[Anthropic]:
    server.play("s", answer_with(FAKE, STORY))
    with Anthropic(api_key="sk-ant-test", base_url=server.base_url("s"), max_retries=0) as sdk:
        yield sdk


def body_of(change: Json) -> Json:
    body = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": [USER], **change}
    return {name: value for name, value in body.items() if value is not None and name != "betas"}


def post(client: Anthropic, change: Json) -> Json:
    """Sends the body as it is: the SDK would not let all of them pass."""
    headers = {"anthropic-beta": ",".join(change["betas"])} if "betas" in change else {}
    answer: Any = client.post("/v1/messages", body=body_of(change), cast_to=object, options={"headers": headers})
    answered: Json = answer
    return answered


@tabled
def test_request__that_the_vendor_takes__answered(client: Anthropic, change: Json) -> None:
    body = body_of(change)
    sampling = {name: body.pop(name) for name in ("temperature", "top_k") if name in body}
    message: Any = client.beta.messages.create(**body, extra_body=sampling)
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]


@pytest.mark.parametrize(("rule", "change", "words"), CASES, ids=[f"{rule}-{words}" for rule, _, words in CASES])
def test_request__that_the_vendor_refuses__raised_by_the_sdk_in_its_words(
    client: Anthropic, rule: str, change: Json, words: str
) -> None:
    FAKE.whole(STORY)
    with pytest.raises(anthropic.BadRequestError) as raised:
        post(client, change)
    error: Any = raised.value.body
    assert words in error["error"]["message"]
    assert (error["type"], error["error"]["type"]) == ("error", "invalid_request_error")


def test_signature__of_an_unknown_answer__taken(client: Anthropic) -> None:
    other = {**THOUGHT, "signature": "b2Ygb3RoZXIgdGhpbmtpbmc="}
    answer = post(client, {"messages": [USER, says("assistant", other, text("a")), USER]})
    assert json.dumps(answer)
