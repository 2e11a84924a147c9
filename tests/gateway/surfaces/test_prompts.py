"""Managed prompts and their rollouts hold for a client of each protocol."""

from __future__ import annotations

import json

import pytest

from tests.gateway.conftest import Routed
from tests.gateway.managed import Prompt, make_prompt
from tests.gateway.surfaces.ways import EVERY_WAY, EVERY_WAY_WITH_INSTRUCTIONS, WHOLE_AND_STREAMED, Json, Way

NAMED = {"x-svc-prompt-config": "support"}
IN_BODY: Json = {"prompt_config": "support", "prompt_variables": {"name": "Ann"}}


@EVERY_WAY
@WHOLE_AND_STREAMED
def test_prompt__request_without_instructions__becomes_them(routed: Routed, way: Way, stream: bool) -> None:
    gateway, scripts = routed(**{way.provider: [way.answer(text="Hello")]})
    prompt = make_prompt(gateway, "You help {{name}}.")

    response = way.ask(gateway, way.body(stream=stream, **IN_BODY))

    assert way.read(response).text == "Hello"
    assert way.system_of(scripts[way.provider]) == "You help Ann."
    assert not {*IN_BODY} & {*json.loads(scripts[way.provider].received[-1].body)}
    assert response.headers["x-svc-prompt-version"] == "1"
    record = gateway.record(response)
    assert (record.prompt_config_id, record.prompt_version, record.is_native) == (prompt.config_id, 1, way.is_native)


@EVERY_WAY
@WHOLE_AND_STREAMED
def test_prompt__with_messages__stand_before_the_clients(routed: Routed, way: Way, stream: bool) -> None:
    gateway, scripts = routed(**{way.provider: [way.answer(text="Hello")]})
    messages = [
        {"role": "system", "content": "You help {{name}}."},
        {"role": "user", "content": "Good day"},
        {"role": "assistant", "content": "Guten Tag"},
    ]
    make_prompt(gateway, "", messages=messages)

    response = way.ask(gateway, way.body("Where is it?", stream=stream, **IN_BODY))

    assert way.read(response).text == "Hello"
    texts = texts_of(json.loads(scripts[way.provider].received[-1].body))
    assert texts == ["You help Ann.", "Good day", "Guten Tag", "Where is it?"]
    record = gateway.record(response)
    assert (record.prompt_version, record.is_native) == (1, way.is_native)


def texts_of(body: Json) -> list[str]:
    """Returns the texts that a provider received, its instructions first."""
    if "prompt" in body:
        return str(body["prompt"]).split("\n\n")
    if "contents" in body:
        return [part["text"] for content in (body["systemInstruction"], *body["contents"]) for part in content["parts"]]
    turns = body.get("input") or body["messages"]
    found = [body.get("instructions") or body.get("system"), *(turn["content"] for turn in turns)]
    texts = [one if isinstance(one, str) else one[0]["text"] for one in found if one]
    return [str(text) for text in texts]


@EVERY_WAY_WITH_INSTRUCTIONS
def test_prompt__request_with_instructions__is_left_as_it_is(routed: Routed, way: Way) -> None:
    gateway, scripts = routed(**{way.provider: [way.answer(text="Hello")]})
    make_prompt(gateway, "You help {{name}}.")

    response = way.ask(gateway, way.body(system="Be brief."), headers={**NAMED, "x-svc-var-name": "Ann"})

    assert way.read(response).text == "Hello"
    assert way.system_of(scripts[way.provider]) == "Be brief."
    assert "the request has a system message" in response.headers["x-svc-warning"]
    assert "x-svc-prompt-version" not in response.headers


@EVERY_WAY
@pytest.mark.parametrize(("share", "version", "variant"), [(100, "2", "target"), (0, "1", "baseline")])
def test_rollout__of_a_version__chooses_it_by_its_share(
    routed: Routed, way: Way, share: int, version: str, variant: str
) -> None:
    gateway, scripts = routed(**{way.provider: [way.answer(text="Hello")]})
    prompt: Prompt = make_prompt(gateway, "Old for {{name}}.", "New for {{name}}.")
    rollout = prompt.roll_out(prompt.version_ids[1], 100)
    forced = {} if share else {"x-svc-force-variant": "baseline"}

    response = gateway.service.until(
        lambda: way.ask(gateway, way.body(**IN_BODY), headers=forced),
        lambda response: response.headers.get("x-svc-variant") == variant,
    )

    assert (response.headers["x-svc-prompt-version"], response.headers["x-svc-variant"]) == (version, variant)
    assert way.system_of(scripts[way.provider]) == {"1": "Old for Ann.", "2": "New for Ann."}[version]
    record = gateway.record(response)
    assert (record.rollout_id, record.variant, record.operation) == (rollout.id, variant, way.operation)
