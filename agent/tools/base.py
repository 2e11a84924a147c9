from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, get_type_hints
from uuid import UUID

import msgspec

from agent.tools.schema import schema_of
from agent.tools.scopes import Granted

# The limit is about 6,000 tokens, so that several results fit next to a conversation.
OUTPUT_CHARACTERS = 24_000


class Arguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The base of a tool's arguments. Fields are `Annotated[..., msgspec.Meta(...)]` with description and bounds."""


class NoArguments(Arguments, kw_only=True, frozen=True):
    """The arguments of tools that take none."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """No argument of any tool can name another project."""

    project_id: UUID
    granted: Granted
    now: datetime


@dataclass(frozen=True, slots=True)
class Tool:
    """`description` is what a model reads. `run` is synchronous, only reads, returns a value for `output.render`, and
    may raise."""

    name: str
    scope: str
    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[ToolContext, Any], Mapping[str, Any]]

    @property
    def schema(self) -> dict[str, Any]:
        return schema_of(self.arguments)


Run = TypeVar("Run", bound=Callable[[ToolContext, Any], Mapping[str, Any]])


class Toolbox:
    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._tools: list[Tool] = []

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def tool(self, title: str, description: str = "") -> Callable[[Run], Run]:
        """Registers a function as a tool of the same name. Its second parameter's type gives the arguments, and its
        docstring the description unless one is given."""

        def add(run: Run) -> Run:
            text = " ".join((description or run.__doc__ or "").split())
            kind = get_type_hints(run)["arguments"]
            self._tools.append(Tool(run.__name__, self._scope, title, text, kind, run))
            return run

        return add


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """`content` is JSON of at most OUTPUT_CHARACTERS: a result, or the error envelope."""

    content: str
    is_error: bool
