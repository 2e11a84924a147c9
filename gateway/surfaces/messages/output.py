"""Translates how the model is to think and what form its answer has to have."""

from __future__ import annotations

from typing import Any

from gateway.surfaces.checks import (
    invalid,
    optional_integer,
    optional_object,
    optional_text,
    required_name,
    required_object,
)
from integrations.providers.common.parameters import EFFORTS, THINKING_OFF

_SCHEMA = "json_schema"
# Chat completions require a name for the format of an answer, which the Messages API does not have.
_SCHEMA_NAME = "answer"
_MAX_WORD = 64

Json = dict[str, Any]


def read_output(fields: Json, untranslatable: list[str]) -> Json:
    """Returns those of `thinking`, `reasoning_effort`, `response_format` and the rest of `output_config` that the
    request has. Raises ValidationError."""
    thinking = _thinking(fields)
    config = dict(optional_object(fields, "output_config") or {})
    effort = optional_text(config, "effort", "output_config")
    config.pop("effort", None)
    form = _format(config.pop("format", None), "output_config.format", untranslatable)
    older = _format(fields.get("output_format"), "output_format", untranslatable)
    made: Json = {
        "thinking": thinking,
        "reasoning_effort": _effort(effort, thinking, untranslatable),
        "response_format": form or older,
        "output_config": {name: value for name, value in config.items() if value is not None} or None,
    }
    return {name: value for name, value in made.items() if value is not None}


def _thinking(fields: Json) -> Json | None:
    thinking = optional_object(fields, "thinking")
    if thinking is None:
        return None
    if len(required_name(thinking, "type", "thinking")) > _MAX_WORD:
        raise invalid("thinking.type", "this type is not known")
    optional_integer(thinking, "budget_tokens", "thinking", minimum=0)
    return thinking


def _effort(effort: str | None, thinking: Json | None, untranslatable: list[str]) -> str | None:
    """Returns the level of reasoning; None where thinking is off, since it is a level of thinking in a chat
    completion."""
    if effort is None or (thinking is not None and thinking["type"] in THINKING_OFF):
        return None
    if effort not in EFFORTS:
        untranslatable.append("output_config.effort: a chat completion has no such level")
        return None
    return effort


def _format(form: Any, place: str, untranslatable: list[str]) -> Json | None:
    if form is None:
        return None
    if not isinstance(form, dict):
        raise invalid(place, "expected an object")
    kind = required_name(form, "type", place)
    if kind != _SCHEMA:
        untranslatable.append(f"{place}: a chat completion has no format of type {kind}")
        return None
    schema = required_object(form, "schema", place)
    return {"type": _SCHEMA, "json_schema": {"name": _SCHEMA_NAME, "schema": schema, "strict": True}}
