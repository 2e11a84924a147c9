"""The messages that a version of a prompt stands for, as written or with its variables filled in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from typing_extensions import TypedDict

from prompts.errors import BrokenIncludeError
from prompts.selectors import PromptVersionRecord


class PromptMessage(TypedDict):
    role: str
    content: str


def prompt_messages(
    version: PromptVersionRecord, values: Mapping[str, Any] | None, *, tolerated: Collection[str] = ()
) -> list[PromptMessage]:
    """Returns the version's messages with `values` filled in, or as they are written when `values` is None. A text that
    renders to nothing is no message. Raises VariableError, and
    BrokenIncludeError for a version whose included prompts have changed so that it cannot be used."""
    if version.problem:
        raise BrokenIncludeError(version.problem)
    template = version.template
    messages = template.messages if values is None else template.render_messages(values, tolerated=tolerated)
    return [{"role": role, "content": text} for role, text in messages]
