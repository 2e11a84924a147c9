"""Tests what the fake of OpenAI's chat completions refuses, as the official SDK sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AzureOpenAI, OpenAI

from tests.fakes.dialects.openai import FAKES
from tests.fakes.dialects.rules.openai import CHAT
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Story
from tests.tables.cases import stored, tabled

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Hello"}


# By rule: what is changed in a request that OpenAI takes, and a part of the error.
REFUSED: dict[str, list[tuple[Json, str]]] = stored(__file__, "REFUSED")
CASES = [(rule, change, words) for rule, cases in REFUSED.items() for change, words in cases]


@pytest.fixture(params=["openai", "azure_openai"])
def client(request: pytest.FixtureRequest, server: DialectServer) -> Iterator[OpenAI]:
    fake = FAKES[request.param]
    server.play(request.param, answer_with(fake, Story(text="ok")))
    access = fake.credentials(server.base_url(request.param))
    if request.param == "openai":
        with OpenAI(base_url=access.base_url, api_key=access.secret, max_retries=0) as sdk:
            yield sdk
        return
    with AzureOpenAI(
        azure_endpoint=access.base_url, api_key=access.secret, api_version="2024-10-21", max_retries=0
    ) as azure:
        yield azure


def ask(client: OpenAI, change: Json) -> None:
    body = {"model": "gpt-4o", "messages": [USER], **change}
    # The SDK has an argument for each field that OpenAI knows; the body as a whole is sent as it is here.
    answer: Any = client.chat.completions.create(model=body["model"], messages=[], extra_body=body)
    if change.get("stream"):
        list(answer)


@tabled
def test_request__that_the_vendor_takes__answered(client: OpenAI, change: Json) -> None:
    body = {"model": "gpt-4o", "messages": [USER], **change}
    create: Any = client.chat.completions.create
    if change.get("stream"):
        assert list(create(**body))
    else:
        assert create(**body).choices[0].message.content == "ok"


@pytest.mark.parametrize(("rule", "change", "words"), CASES, ids=[f"{rule}-{words}" for rule, _, words in CASES])
def test_request__that_the_vendor_refuses__raised_by_the_sdk_in_its_words(
    client: OpenAI, rule: str, change: Json, words: str
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, change)
    expected = next(one for one in CHAT.rules if one.name == rule)
    assert words in raised.value.message
    assert raised.value.type == "invalid_request_error"
    assert raised.value.code == expected.code
    assert (raised.value.param is None) == (expected.param is None)


@tabled
def test_request__tools_without_effort_or_at_an_older_model__answered(client: OpenAI, change: Json) -> None:
    ask(client, change)
