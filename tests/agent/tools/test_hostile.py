"""For any arguments a model may write, a tool gives a result or an error that names the argument, never an
exception."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import jsonschema_rs
import pytest

from agent.tools import registry
from agent.tools.base import OUTPUT_CHARACTERS, Tool
from tests.agent.tools.calls import calls
from tests.agent.tools.world import World
from tests.night import cases

# More than a thousand calls in one test take long on a busy machine.
pytestmark = pytest.mark.timeout(900)

_TEXTS = [
    "",
    "\\",
    "\\\\\\",
    "%",
    "%_%\\",
    "'; DROP TABLE requests; --",
    '" OR 1=1',
    "umber\nüber\u202e🦄",
    str(2**63),
    "9" * 9,
    "٣",
    "0001-01-01",
    "9999-12-31T23:59:59+23:59",
    "2026-02-30",
    "2026-11-21T10:00:00",
    str(uuid4()),
    "00000000-0000-0000-0000-000000000000",
]
_NEVER_TEXTS = ["\x00", "a\x00b", "\ud800", "a\udfff", "x" * 90_000]
_NUMBERS = [0, 1, 2**31, 2**53, 2**62, 0.1, 1e-10, 12345.678901234567]
_NEVER_NUMBERS = [-1, 2**63, 2**64, -(2**63), 10**40, float("inf"), float("nan"), True, "1", [], {}]
_NEVER: dict[str, list[Any]] = {
    "string": [*_NEVER_TEXTS, 5, True, [], {}, ["a"], {"a": 1}],
    "integer": [*_NEVER_NUMBERS, 1.5],
    "number": _NEVER_NUMBERS,
    "boolean": ["true", 1, 0, [], {}],
    # Arrays are of objects, with the fields that an experiment's candidate has.
    "array": [
        "a",
        5,
        True,
        {},
        {"a": 1},
        [],
        [5],
        ["a"],
        [[]],
        [{"a": 1}],
        [{"a` - at `$.order": 1}],
        [{}] * 5,
        [{"temperature": "hot"}],
        [{"temperature": 3}],
        [{"max_tokens": 0}],
        [{"version_id": "x"}],
        [{"model": "a\x00"}],
        [{"model": "x" * 90_000}],
        [{}, {"model": 5}],
        [None],
    ],
}
_PERHAPS: dict[str, list[Any]] = {
    "string": _TEXTS,
    "integer": _NUMBERS[:5],
    "number": _NUMBERS,
    "boolean": [True, False],
    "array": [[{}], [{"max_tokens": 1}], [{}] * 4, *([{"model": text}] for text in _TEXTS), [{"temperature": 1e-10}]],
}


# Of an argument that an earlier tool has taken, the day tries one of so many values.
_PART = 5


@pytest.fixture
def world(kept_world: World, db: None) -> World:
    return kept_world


@pytest.fixture
def errors(world: World) -> Iterator[list[str]]:
    """Yields the codes of refusals, none of which may be internal_error."""
    codes: list[str] = []
    yield codes
    assert not {"internal_error", "analytics_query"} & set(codes)


def test_every_tool__value_that_no_argument_takes__named(world: World, errors: list[str]) -> None:
    for tool, name, values in _values(_NEVER):
        for value in values:
            if name.endswith("version") and type(value) is int:
                continue  # The number of a version is taken as a number too.
            error = _error(world, tool, {**calls(world)[tool.name], name: value})
            assert error is not None, f"{tool.name} takes {value!r:.50} as {name}"
            assert error["message"].startswith(f"{name}: "), error
            assert set(error.get("details", {})) == {name}
            errors.append(error["code"])


def test_every_tool__odd_value__answered_or_named(world: World, errors: list[str]) -> None:
    for tool, name, values in _values(_PERHAPS):
        field, validator = tool.schema["properties"][name], jsonschema_rs.validator_for(tool.schema)
        for value in values:
            arguments = {**calls(world)[tool.name], name: value}
            error = _error(world, tool, arguments)
            if error is not None:
                errors.append(error["code"])
                assert error["type"] in ("invalid_request_error", "not_found_error"), (tool.name, name, value, error)
            elif value != "":
                assert "pattern" in field or validator.is_valid(arguments), f"{tool.name} takes {value!r} as {name}"


def test_every_tool__offset_beyond_everything__empty_page(world: World) -> None:
    for tool in registry.ALL:
        if "offset" in tool.schema["properties"]:
            found = world.ask(tool.name, **{**calls(world)[tool.name], "offset": 2**62, "limit": 100})
            assert (found["results"], found["next_offset"]) == ([], None), tool.name


def test_every_tool__required_argument_missing__named(world: World) -> None:
    for tool in registry.ALL:
        for name in tool.schema["required"]:
            arguments = {key: value for key, value in calls(world)[tool.name].items() if key != name}
            for missing in (arguments, {**arguments, name: None}):
                error = _error(world, tool, missing)
                assert error is not None
                assert (error["code"], error["message"].split(":")[0]) == ("missing_field", name)


def test_every_tool__scope_not_granted__refused_whatever_the_arguments(world: World) -> None:
    for tool in registry.ALL:
        granted = replace(world.context.granted, scopes=world.context.granted.scopes - {tool.scope})
        context = replace(world.context, granted=granted)
        assert tool not in registry.offered(granted)
        outcome = registry.call(context, tool.name, calls(world)[tool.name])
        assert outcome.is_error
        assert json.loads(outcome.content)["error"]["code"] == "scope_missing"


def _values(every: dict[str, list[Any]]) -> Iterator[tuple[Tool, str, Sequence[Any]]]:
    """Many tools take the same argument: by day its first tool gets all values, each other one every fifth, another
    fifth in turn."""
    seen: Counter[str] = Counter()
    for tool in registry.ALL:
        for name, field in tool.schema["properties"].items():
            values, kind = every[field["type"]], f"{name} {json.dumps(field, sort_keys=True)}"
            yield tool, name, cases(values, by_day=values[seen[kind] % _PART :: _PART] if seen[kind] else values)
            seen[kind] += 1


def _error(world: World, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any] | None:
    outcome = world.call(tool.name, arguments)
    assert len(outcome.content) <= OUTPUT_CHARACTERS
    outcome.content.encode()
    found = json.loads(outcome.content)
    assert ("error" in found and set(found) == {"error"}) == outcome.is_error
    if not outcome.is_error:
        return None
    error: dict[str, Any] = found["error"]
    assert {"type", "code", "message"} <= set(error)
    return error
