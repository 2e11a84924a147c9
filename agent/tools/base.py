"""What a tool is, what it may see, and what comes of calling one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from agent.scopes import Granted
from agent.tools.schema import schema_of

# About 6,000 tokens: several results fit next to a conversation.
OUTPUT_CHARACTERS = 24_000


class Arguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """One subclass per tool. Fields are `Annotated[..., msgspec.Meta(...)]` with a description and bounds."""


class NoArguments(Arguments, kw_only=True, frozen=True):
    """For tools that have nothing to choose."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """All that a tool may know of who asks. No argument of any tool can name another project."""

    project_id: UUID
    granted: Granted
    now: datetime


@dataclass(frozen=True, slots=True)
class Tool:
    """`run` is synchronous, reads only, and returns what `output.render` can make JSON of; it may raise."""

    name: str
    scope: str
    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[ToolContext, Any], Mapping[str, Any]]

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments, without references."""
        return schema_of(self.arguments)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """`content` is JSON text of at most OUTPUT_CHARACTERS: a result, or `{"error": {type, code, message}}`."""

    content: str
    is_error: bool
