from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import jsonschema_rs
import pytest

from agent.tools import registry
from agent.tools.base import Arguments, Tool
from agent.tools.llm.experiments import ListExperiments
from agent.tools.llm.models import ListPrices
from agent.tools.llm.prompts import ListActivations
from agent.tools.llm.requests import ListRequests
from agent.tools.llm.rollouts import ListRollouts
from agent.tools.llm.scores import ListScores, ScoreMetrics
from agent.tools.schema import choices_of
from analytics.models import ScoreType
from analytics.queries.groupings import GROUPINGS
from analytics.request_log.record import Outcome
from gateway.project_settings.settings import AGENT_SCOPES
from gateway.tables.experiment import ExperimentState, ExperimentVerdict
from integrations.models import PriceSource
from prompts.models import PromptActivation
from rollouts.models import Mode
from rollouts.states import Status
from tests.agent.tools.calls import calls
from tests.agent.tools.world import World

# The shortest limits among providers for a function's name and description.
NAME, DESCRIPTION_CHARACTERS = re.compile(r"[a-z][a-z0-9_]{0,63}"), 1024
_VERBS = ("get_", "list_", "search_", "diff_", "estimate_")


@pytest.fixture(params=registry.ALL, ids=lambda tool: tool.name)
def tool(request: pytest.FixtureRequest) -> Tool:
    found: Tool = request.param
    return found


def test_schema__of_every_tool__valid_and_without_references(tool: Tool) -> None:
    assert jsonschema_rs.meta.is_valid(tool.schema)
    assert not set(_keys(tool.schema)) & {"$ref", "$defs", "anyOf", "title"}
    for name, field in _fields(tool.schema):
        assert NAME.fullmatch(name)
        assert field["type"] in ("string", "integer", "number", "boolean", "array")
        assert field["description"].endswith(".")
        assert _is_bounded(field), f"{name} takes values of any length or size"


def test_tool__name_scope_and_description__as_models_take_them(tool: Tool) -> None:
    assert NAME.fullmatch(tool.name)
    assert tool.name.startswith(_VERBS)
    assert tool.scope in AGENT_SCOPES
    assert 20 < len(tool.description) <= DESCRIPTION_CHARACTERS
    assert tool.title


def test_tools__names__each_once_and_every_scope_has_some() -> None:
    names = [tool.name for tool in registry.ALL]
    assert len(set(names)) == len(names)
    assert {tool.scope for tool in registry.ALL} == set(AGENT_SCOPES)


def test_tool__right_arguments__fit_its_schema(world: World) -> None:
    for tool in registry.ALL:
        jsonschema_rs.validate(tool.schema, calls(world)[tool.name])


@pytest.mark.parametrize(
    ("arguments", "field", "choices"),
    [
        (ScoreMetrics, "group_by", GROUPINGS),
        (ScoreMetrics, "score_type", ScoreType.values),
        (ListScores, "score_type", ScoreType.values),
        (ListActivations, "kind", PromptActivation.Kind.values),
        (ListRollouts, "status", Status),
        (ListRollouts, "mode", Mode.values),
        (ListPrices, "source", PriceSource.values),
        (ListExperiments, "state", ExperimentState.values),
        (ListExperiments, "verdict", ExperimentVerdict.values),
        (ListRequests, "outcome", Outcome),
    ],
)
def test_choices__of_an_argument__all_that_there_are(
    arguments: type[Arguments], field: str, choices: Iterable[str]
) -> None:
    assert set(choices_of(arguments, field)) == set(choices)


def _fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    for name, field in schema["properties"].items():
        yield name, field
        if field["type"] == "array":
            yield from _fields(field["items"])


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (key for key in value if key != "properties")
        for item in value.values():
            yield from _keys(item)


def _is_bounded(field: dict[str, Any]) -> bool:
    if field["type"] == "string":
        return bool({"enum", "maxLength", "pattern", "format"} & set(field))
    if field["type"] == "array":
        return "maxItems" in field
    return field["type"] == "boolean" or {"minimum", "maximum"} <= set(field)
