"""The definition of a tool: its arguments, its context, and the outcome of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
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
    """The caller's context for a tool. No argument of any tool can name another project."""

    project_id: UUID
    granted: Granted
    now: datetime


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool; `run` is synchronous, only reads, returns a value for `output.render`, and may raise."""

    name: str
    scope: str
    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[ToolContext, Any], Mapping[str, Any]]

    @property
    def schema(self) -> dict[str, Any]:
        """Returns the JSON schema of the arguments, without references."""
        return schema_of(self.arguments)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of a call. `content` is JSON of at most OUTPUT_CHARACTERS: a result, or the error envelope."""

    content: str
    is_error: bool
