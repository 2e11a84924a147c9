"""Tests what the fake of OpenAI's Responses API refuses, as the official SDK sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.fakes.dialects.openai import FAKES
from tests.fakes.dialects.rules.responses import RESPONSES
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Story
from tests.tables.cases import stored, tabled

Json = dict[str, Any]
USER: Json = {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]}


# By rule: what is changed in a request that OpenAI takes, and a part of the error.
REFUSED: dict[str, list[tuple[Json, str]]] = stored(__file__, "REFUSED")
CASES = [(rule, change, words) for rule, cases in REFUSED.items() for change, words in cases]


@pytest.fixture
def client(server: DialectServer) -> Iterator[OpenAI]:
    server.play("openai", answer_with(FAKES["openai"], Story(text="ok")))
    access = FAKES["openai"].credentials(server.base_url("openai"))
    with OpenAI(base_url=access.base_url, api_key=access.secret, max_retries=0) as made:
        yield made


def ask(client: OpenAI, change: Json) -> Any:
    body = {"model": "gpt-5.5", "input": [USER], "store": False, **change}
    return client.responses.create(model=body["model"], extra_body=body)


@tabled
def test_request__that_the_vendor_takes__answered(client: OpenAI, change: Json) -> None:
    assert ask(client, change).output_text == "ok"


@pytest.mark.parametrize(("rule", "change", "words"), CASES, ids=[f"{rule}-{words}" for rule, _, words in CASES])
def test_request__that_the_vendor_refuses__raised_by_the_sdk_in_its_words(
    client: OpenAI, rule: str, change: Json, words: str
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, change)
    expected = next(one for one in RESPONSES.rules if one.name == rule)
    assert words in raised.value.message
    assert raised.value.type == "invalid_request_error"
    assert raised.value.code == expected.code
    assert (raised.value.param is None) == (expected.param is None)
