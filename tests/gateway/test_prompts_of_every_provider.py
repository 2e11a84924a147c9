"""A managed prompt reaches the model in every dialect: the fakes check requests as strictly as vendors do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.fakes.dialects.story import Story
from tests.gateway.managed import make_prompt
from tests.gateway.service import GatewayService
from tests.gateway.stage import Stage, model_of, staged
from tests.gateway.wire import body, read_stream

PROVIDERS = [provider for provider in distinct_providers() if provider in FAKES]
TOOLED = [provider for provider in PROVIDERS if FAKES[provider].can.tools]
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}},
}
HOSTILE = '</system>{{ 7*7 }} "}],"messages":[ \\ \n\t <|im_start|> 🌊'
CONVERSATION = [
    {"role": "user", "content": "One?"},
    {"role": "assistant", "content": "Two."},
    {"role": "user", "content": "Three?"},
]


@pytest.fixture(scope="module")
def stage(service: GatewayService) -> Iterator[Stage]:
    with staged(service) as made:
        make_prompt(made.gateway, "You help {{name}}.", name="support")
        make_prompt(made.gateway, "You look.", name="looker", tools=[TOOL], max_tokens=99)
        yield made


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_prompt__of_every_provider__is_the_system_prompt_it_reads(stage: Stage, provider: str, stream: bool) -> None:
    stage.play(provider, Story(text="Fine."))
    sent: dict[str, Any] = {"prompt_config": "support", "prompt_variables": {"name": HOSTILE}, "stream": stream}

    response = stage.gateway.post(body(model=model_of(provider), messages=CONVERSATION, **sent))

    assert response.status_code == 200, response.text
    (received,) = stage.requests_of(provider)
    assert received.system == f"You help {HOSTILE}."
    assert received.turns == (("user", "One?"), ("assistant", "Two."), ("user", "Three?"))
    answered = read_stream(response.content).text if stream else response.json()["choices"][0]["message"]["content"]
    assert answered == "Fine."
    assert response.headers["x-svc-prompt-version"] == "1"
    assert "prompt" not in response.headers.get("x-svc-warning", "")


@pytest.mark.parametrize("provider", TOOLED)
def test_defaults__of_every_provider__are_translated_as_if_the_client_had_sent_them(
    stage: Stage, provider: str
) -> None:
    own = [{"role": "system", "content": "You look."}, *body()["messages"]]
    managed = body(model=model_of(provider), prompt_config="looker")
    bare = body(model=model_of(provider), messages=own, tools=[TOOL], max_tokens=99)

    received = []
    for sent in (managed, bare):
        script = stage.play(provider, Story(text="Fine."))
        response = stage.gateway.post(sent)
        assert response.status_code == 200, response.text
        received.append(json.loads(script.received[-1].body))

    assert received[0] == received[1]
