"""A prompt version by its number, whichever version is active."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.scripted import Script, answer
from tests.gateway.conftest import Scripted
from tests.gateway.playground.calls import MESSAGES, ask, compare, results
from tests.gateway.service import Gateway
from tests.tables.cases import tabled

_NAME = {"name": "name", "type": "string", "required": True}
_AGE = {"name": "age", "type": "number", "required": False}
_VERSIONS: list[dict[str, Any]] = [
    {"system_prompt": "You greet."},
    {"system_prompt": "You greet {{ name }}, {{ age }}.", "variables": [_NAME, _AGE], "temperature": 0.25},
]


@pytest.fixture
def greeter(scripted: Scripted) -> tuple[Gateway, Script]:
    """A prompt with two versions, the first of them active, which the worker knows already."""
    gateway, script = scripted(answer())
    made = gateway.service.seeder.call("make_prompt", project_id=gateway.project_id, name="greeter", versions=_VERSIONS)
    gateway.service.until(
        lambda: ask(gateway, prompt_config="greeter"), lambda found: found.status_code == 200, seconds=30
    )
    script.received.clear()
    assert len(made["version_ids"]) == 2
    return gateway, script


def test_version__not_the_active_one__is_rendered_and_recorded(greeter: tuple[Gateway, Script]) -> None:
    gateway, script = greeter
    values = {"name": "Ann", "age": 7}
    response = ask(gateway, prompt_config="greeter", prompt_version=2, prompt_variables=values)
    assert response.status_code == 200, response.text
    result = response.json()
    assert (result["prompt_version"], result["variant"]) == (2, None)
    sent = json.loads(script.received[-1].body)
    assert sent["messages"] == [{"role": "system", "content": "You greet Ann, 7."}, *MESSAGES]
    assert sent["temperature"] == 0.25
    record = gateway.record(result["request_id"])
    assert (record.prompt_version, record.rollout_id) == (2, "")


def test_version__of_a_comparison__is_every_models(greeter: tuple[Gateway, Script]) -> None:
    gateway, _ = greeter
    fields = {"prompt_config": "greeter", "prompt_version": 2, "prompt_variables": {"name": "Ann"}}
    found = results(compare(gateway, "openai/gpt-4o", "openai/gpt-4.1", **fields))
    assert [result["prompt_version"] for result in found.values()] == [2, 2]


def test_version__rollout_runs__is_no_part_of_it(greeter: tuple[Gateway, Script]) -> None:
    gateway, _ = greeter
    versions = gateway.manage("GET", "prompts/configs").json()["results"][0]
    listed = gateway.manage("GET", f"prompts/configs/{versions['id']}/versions").json()["results"]
    target = next(version["id"] for version in listed if version["version_number"] == 2)
    started = {"version_id": target, "allocation_type": "random", "weights": [100]}
    gateway.service.seeder.call("start_rollout", project_id=gateway.project_id, config_id=versions["id"], **started)
    result = ask(gateway, prompt_config="greeter", prompt_version=1).json()
    assert (result["prompt_version"], result["variant"]) == (1, None)


def test_version__system_message__is_skipped_as_elsewhere(greeter: tuple[Gateway, Script]) -> None:
    gateway, _ = greeter
    messages = [{"role": "system", "content": "Be brief."}, *MESSAGES]
    result = ask(gateway, prompt_config="greeter", prompt_version=2, messages=messages).json()
    assert result["prompt_version"] is None
    assert "system message" in result["warning"]


@tabled
@pytest.mark.parametrize("stream", [False, True])
def test_version__bad_input__is_reported_by_field_and_nothing_is_sent(
    greeter: tuple[Gateway, Script], fields: dict[str, Any], status: int, code: str, named: str | None, stream: bool
) -> None:
    gateway, script = greeter
    request: dict[str, Any] = {"prompt_config": "greeter", "prompt_version": 2, **fields}
    response = ask(gateway, stream=stream, **request)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, code), response.text
    assert list(error.get("details") or []) == ([named] if named else [])
    assert script.received == []


def test_version__another_projects__is_not_there(greeter: tuple[Gateway, Script], scripted: Scripted) -> None:
    other, script = scripted(answer())
    response = ask(other, prompt_config="greeter", prompt_version=1)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "prompt_config_not_found")
    assert script.received == []
