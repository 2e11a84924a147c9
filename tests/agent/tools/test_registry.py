from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID, uuid4

import msgspec
import pytest

from agent.tools import registry
from agent.tools.base import OUTPUT_CHARACTERS, Arguments, Tool, ToolContext
from agent.tools.scopes import Granted
from core.roles import PROJECT_RIGHTS, Right
from gateway.project_settings.settings import AGENT_SCOPES
from tests.factories.core import make_project
from tests.tables.cases import tabled

_SCOPE = "llm:read"


class _EchoArguments(Arguments, kw_only=True, frozen=True):
    name: Annotated[str, msgspec.Meta(max_length=5, description="A name.")]
    limit: Annotated[int, msgspec.Meta(ge=1, le=100, description="How many.")] = 20


def _granted(*scopes: str, rights: Iterable[Right] = PROJECT_RIGHTS) -> Granted:
    return Granted(frozenset(scopes), frozenset(rights))


def _context(project_id: UUID | None = None, *, scopes: tuple[str, ...] = AGENT_SCOPES) -> ToolContext:
    return ToolContext(project_id or uuid4(), _granted(*scopes), datetime.now(UTC))


def _echo(context: ToolContext, arguments: _EchoArguments) -> Mapping[str, Any]:
    return {"name": arguments.name, "limit": arguments.limit}


def _defect(context: ToolContext, arguments: _EchoArguments) -> Mapping[str, Any]:
    raise RuntimeError("secret row")


def _not_a_number(context: ToolContext, arguments: _EchoArguments) -> Mapping[str, Any]:
    return {"rate": float("nan")}


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {"echo": _echo, "defect": _defect, "not_a_number": _not_a_number}
    named = {name: Tool(name, _SCOPE, name, name, _EchoArguments, run) for name, run in runs.items()}
    monkeypatch.setattr(registry, "_BY_NAME", named)


def _error(name: str, arguments: str | Mapping[str, Any], **options: Any) -> dict[str, Any]:
    outcome = registry.call(_context(**options), name, arguments)
    assert outcome.is_error
    found: dict[str, Any] = json.loads(outcome.content)["error"]
    assert {"type", "code", "message"} <= set(found)
    return found


def test_call__arguments_as_text_or_mapping__the_result_as_json(tools: None) -> None:
    for arguments in ('{"name": "ab", "limit": null}', {"name": "ab"}):
        outcome = registry.call(_context(), "echo", arguments)
        assert (json.loads(outcome.content), outcome.is_error) == ({"name": "ab", "limit": 20}, False)


@tabled
def test_call__bad_argument__error_names_it(tools: None, arguments: dict[str, Any], field: str) -> None:
    error = _error("echo", arguments)

    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith(f"{field}: ")


@pytest.mark.parametrize("text", ["[" * 50_000, "{", "[]", '"x"', '{"name": "\ud800"}', '{"n":' * 5_000, "x" * 200_000])
def test_call__no_json_object__error(tools: None, text: str) -> None:
    assert _error("echo", text)["code"] == "invalid_json"


def test_call__unknown_tool__error() -> None:
    assert _error("no such \ud800 tool", {})["code"] == "unknown_tool"


def test_call__scope_not_granted__refused_though_named(tools: None) -> None:
    error = _error("echo", {"name": "a"}, scopes=("billing:read",))

    assert (error["type"], error["code"]) == ("permission_error", "scope_missing")


@pytest.mark.parametrize("name", ["defect", "not_a_number"])
def test_call__defect_of_a_tool__error_without_its_text(tools: None, name: str) -> None:
    error = _error(name, {"name": "a"})

    assert (error["code"], error["message"]) == ("internal_error", "The tool failed unexpectedly.")


def test_offered__scopes__only_their_tools() -> None:
    assert registry.offered(_granted()) == []
    assert {tool.scope for tool in registry.offered(_granted("project:read"))} == {"project:read"}
    assert registry.offered(_granted(*AGENT_SCOPES)) == list(registry.ALL)


def test_offered__rights__only_tools_that_the_caller_may_use() -> None:
    allowed = _granted(*AGENT_SCOPES, rights=[Right.READ])
    offered = {tool.name for tool in registry.offered(allowed)}

    assert {"get_metrics_overview", "list_sessions"} <= offered
    assert not offered & {"search_requests", "get_request", "list_session_spans", "get_gateway_settings"}
    outcome = registry.call(ToolContext(uuid4(), allowed, datetime.now(UTC)), "search_requests", {"query": "a"})
    assert outcome.is_error
    assert json.loads(outcome.content)["error"]["code"] == "permission_denied"


def test_get_project__own_project__its_facts(db: None) -> None:
    project = make_project()

    outcome = registry.call(_context(project.pk), "get_project", "")

    found = json.loads(outcome.content)
    assert not outcome.is_error
    assert (found["id"], found["name"]) == (str(project.pk), project.name)
    assert len(outcome.content) <= OUTPUT_CHARACTERS
