from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from agent.tools import registry
from agent.tools.base import Tool
from tests.agent.tools.calls import calls
from tests.agent.tools.world import World, make_world
from tests.kept import Keep
from tests.night import cases, examples

# More than a thousand calls in one test take long on a busy machine.
pytestmark = pytest.mark.timeout(900)

# Arguments that choose a form of the answer and name no row.
_MANNER = {"start_date", "end_date", "last", "period"}
# The results of these tools contain no name of the project.
_NAMELESS = {
    "get_feedback_metrics", "list_models", "list_usage_metrics", "get_provider_latency", "list_daily_costs",
    "get_budget_status", "list_problems",
}  # fmt: skip


@pytest.fixture(scope="module")
def kept_stranger(keep: Keep) -> World:
    return keep(lambda spool: make_world(spool, "zaffre"))


@pytest.fixture
def world(kept_world: World, db: None) -> World:
    return kept_world


@pytest.fixture
def stranger(kept_stranger: World, db: None) -> World:
    return kept_stranger


def test_calls__every_tool__has_one(world: World) -> None:
    assert list(calls(world)) == [tool.name for tool in registry.ALL]


def test_every_tool__names_of_another_project__nothing_of_it_comes_back(world: World, stranger: World) -> None:
    """Every tool gets the other project's own arguments, and each text a pattern of its names. At night every text and
    id argument gets each name that its owner could give."""
    tried = 0
    for tool in registry.ALL:
        for arguments in _attempts(tool, stranger):
            content = world.call(tool.name, arguments).content
            assert not _names_in(content, arguments, stranger), f"{tool.name} {arguments}: {content}"
            tried += 1
    assert tried > examples(2, 10) * len(registry.ALL)


def test_every_tool__called_by_the_other_project_itself__names_it(stranger: World) -> None:
    """The control: the names that the test above looks for exist and can be found by their own project."""
    for tool in registry.ALL:
        arguments = calls(stranger)[tool.name]
        outcome = stranger.call(tool.name, arguments)
        assert not outcome.is_error, outcome.content
        assert bool(_names_in(outcome.content, {}, stranger)) == (tool.name not in _NAMELESS), tool.name


def test_every_tool__project_named_in_arguments__refused(world: World, stranger: World) -> None:
    for tool in registry.ALL:
        for name in ("project_id", "project", "X-Project-Id"):
            outcome = world.call(tool.name, {**calls(world)[tool.name], name: str(stranger.project.pk)})
            assert outcome.is_error
            assert json.loads(outcome.content)["error"]["message"].startswith(f"{name}: ")


def test_every_tool__own_project__never_a_credential(world: World) -> None:
    for tool in registry.ALL:
        content = world.call(tool.name, calls(world)[tool.name]).content
        assert world.secret not in content
        assert world.secret[-4:] not in content


def _attempts(tool: Tool, stranger: World) -> Iterator[dict[str, Any]]:
    right = calls(stranger)[tool.name]
    yield right
    for name, field in tool.schema["properties"].items():
        if field["type"] == "array":
            yield {**right, name: [{"version_id": str(identity)} for identity in stranger.version_ids]}
            yield {**right, name: [{"model": stranger.model}]}
        if field["type"] != "string" or "enum" in field or name in _MANNER:
            continue
        for value in [*cases(stranger.names, by_day=[]), stranger.marker, f"%{stranger.marker}%", "%", "1"]:
            if field.get("format") != "uuid" or _is_uuid(value):
                yield {**right, name: value}


def _names_in(content: str, arguments: dict[str, Any], stranger: World) -> set[str]:
    for argument in sorted(map(str, arguments.values()), key=len, reverse=True):
        if len(argument) > len("%%"):
            content = content.replace(argument, "")
    return {name for name in [*stranger.names, stranger.marker] if name in content}


def _is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False
