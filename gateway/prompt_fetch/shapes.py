from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from typing_extensions import TypedDict

from prompts.content.messages import PromptMessage


class PromptRollout(TypedDict):
    """The running rollout that chose the version; `share` is the part of all users that get this arm, 0 to 1."""

    id: UUID
    arm: Literal["target", "baseline"]
    share: float


class FetchedVariable(TypedDict):
    name: str
    type: Literal["string", "number", "boolean", "array", "object"]
    required: bool


class FetchedPrompt(TypedDict):
    """A prompt as an application uses it. `attributes` are the OpenTelemetry attributes for the spans of its calls."""

    name: str
    config_id: UUID
    version_id: UUID
    version_number: int
    label: str | None
    model: str
    temperature: float | None
    max_tokens: int | None
    tools: list[dict[str, Any]]
    response_format: dict[str, Any] | None
    variables: list[FetchedVariable]
    messages: list[PromptMessage]
    system_prompt: str
    rendered: bool
    rollout: PromptRollout | None
    attributes: dict[str, str]
