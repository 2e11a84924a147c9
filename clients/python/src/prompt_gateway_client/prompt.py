"""A prompt as the service answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict


class Message(TypedDict):
    role: str
    content: Any


@dataclass(frozen=True)
class Prompt:
    """A version of a prompt. `messages` go before the application's own, `attributes` onto the spans of its calls.

    `rollout` is None, or has `id`, `arm` and `share`. `source` is `fallback` for the text given as `fallback=`.
    """

    name: str
    messages: list[Message]
    system_prompt: str
    config_id: str = ""
    version_id: str = ""
    version_number: int = 0
    label: str | None = None
    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    tools: list[dict[str, Any]] = field(default_factory=list)
    response_format: dict[str, Any] | None = None
    variables: list[dict[str, Any]] = field(default_factory=list)
    rendered: bool = False
    rollout: dict[str, Any] | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    source: Literal["service", "fallback"] = "service"

    @classmethod
    def of_text(cls, name: str, text: str) -> Prompt:
        """Returns a fallback whose one message is the system's text."""
        return cls(name, [{"role": "system", "content": text}], text, rendered=True, source="fallback")

    @classmethod
    def of_answer(cls, answer: Mapping[str, Any]) -> Prompt:
        """Returns the prompt of an answer, whose unknown fields are left out. Raises ValueError for what is none."""
        values = {name: value for name, value in answer.items() if name in _FIELDS}
        for name, kind in _REQUIRED.items():
            if not isinstance(values.get(name), kind):
                raise ValueError(f"{name} is not {kind.__name__}")
        return cls(**values)


_FIELDS = frozenset(Prompt.__dataclass_fields__) - {"source"}
_REQUIRED: Mapping[str, type] = {
    "name": str,
    "version_number": int,
    "messages": list,
    "system_prompt": str,
    "attributes": dict,
}
