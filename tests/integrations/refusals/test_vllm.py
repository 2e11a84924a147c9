"""Tests what the fake of vLLM refuses, as the official SDK of OpenAI sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.fakes.dialects.openai import FAKES
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Story
from tests.tables.cases import stored, tabled

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Hello"}

# By rule: what is changed in a request that vLLM takes, and a part of the error.
REFUSED: dict[str, list[tuple[Json, str]]] = stored(__file__, "REFUSED")
CASES = [(change, words) for cases in REFUSED.values() for change, words in cases]


@pytest.fixture(params=["vllm", "openai_compatible"])
def client(request: pytest.FixtureRequest, server: DialectServer) -> Iterator[OpenAI]:
    fake = FAKES[request.param]
    server.play(request.param, answer_with(fake, Story(text="ok")))
    access = fake.credentials(server.base_url(request.param))
    with OpenAI(base_url=access.base_url, api_key=access.secret, max_retries=0) as sdk:
        yield sdk


def ask(client: OpenAI, change: Json) -> Any:
    body = {"model": "qwen3", "messages": [USER], **change}
    return client.chat.completions.create(model="qwen3", messages=[], extra_body=body)


@tabled
def test_request__that_vllm_takes__answered(client: OpenAI, change: Json) -> None:
    assert ask(client, change).choices[0].message.content == "ok"


@pytest.mark.parametrize(("change", "words"), CASES, ids=str)
def test_request__that_vllm_refuses__raised_by_the_sdk_in_its_words(client: OpenAI, change: Json, words: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, change)
    assert words in raised.value.message
    assert raised.value.type == "BadRequestError"
    assert raised.value.code == "400"
