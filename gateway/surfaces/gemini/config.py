"""https://ai.google.dev/api/generate-content#generationconfig"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.surfaces.checks import Json, field_of, invalid, optional_flag, optional_text
from gateway.surfaces.gemini.fields import json_schema, optional_message, optional_number, optional_whole_number

_PLACE = "generationConfig"
_MAX_TOKENS = 1_000_000
_MAX_CHOICES = 10
_INT32 = 2**31
_JSON, _TEXT = "application/json", "text/plain"
# Chat completions require a name for the format of an answer, which Google does not have.
_SCHEMA_NAME = "answer"
_DYNAMIC = -1
_LEVELS = {"MINIMAL": "minimal", "LOW": "low", "MEDIUM": "medium", "HIGH": "high"}
_UNSPECIFIED = "THINKING_LEVEL_UNSPECIFIED"
_THINKING = "thinkingConfig"
# These settings have no counterpart in a chat completion, in which Google's adapter takes them under their own names.
_GOOGLES = frozenset(
    {
        "audioTimestamp",
        "enableAffectiveDialog",
        "enableEnhancedCivicAnswers",
        "imageConfig",
        "mediaResolution",
        "modelSelectionConfig",
        "routingConfig",
        "speechConfig",
    }
)
_OF_FORMAT = ("responseMimeType", "responseSchema", "responseJsonSchema")


def read_config(fields: Json, untranslatable: list[str]) -> tuple[Json, bool]:
    config = optional_message(fields, _PLACE)
    if config is None:
        return {}, False
    made: Json = {}
    for name, value in config.items():
        if value is None:
            continue
        if (renamed := _NUMBERS.get(name)) is not None:
            other, reader = renamed
            made[other] = reader(config, name)
        elif name in _GOOGLES:
            made[name] = value
        elif name not in _READ_TOGETHER:
            untranslatable.append(f"{_PLACE}.{name}: a chat completion has no such field")
    if config.get("stopSequences"):
        made["stop"] = _stop(config)
    made |= _logprobs(config) | _modalities(config) | _format(config, untranslatable)
    thinking, shows = _thinking(config)
    return made | thinking, shows


def _number(minimum: float, maximum: float) -> Callable[[Json, str], Any]:
    return lambda config, name: optional_number(config, name, _PLACE, minimum=minimum, maximum=maximum)


def _whole(minimum: int, maximum: int) -> Callable[[Json, str], Any]:
    return lambda config, name: optional_whole_number(config, name, _PLACE, minimum=minimum, maximum=maximum)


# Google's names of parameters with those of a chat completion.
_NUMBERS: Mapping[str, tuple[str, Callable[[Json, str], Any]]] = {
    "temperature": ("temperature", _number(0, 2)),
    "topP": ("top_p", _number(0, 1)),
    "topK": ("top_k", _whole(0, _MAX_TOKENS)),
    "maxOutputTokens": ("max_tokens", _whole(1, _MAX_TOKENS)),
    "candidateCount": ("n", _whole(1, _MAX_CHOICES)),
    "seed": ("seed", _whole(-_INT32, _INT32 - 1)),
    "presencePenalty": ("presence_penalty", _number(-2, 2)),
    "frequencyPenalty": ("frequency_penalty", _number(-2, 2)),
}
_READ_TOGETHER = frozenset(
    {"stopSequences", "responseLogprobs", "logprobs", "responseModalities", _THINKING, *_OF_FORMAT}
)


def _stop(config: Json) -> list[str]:
    sequences = config["stopSequences"]
    if not isinstance(sequences, list) or not all(isinstance(sequence, str) for sequence in sequences):
        raise invalid(field_of(_PLACE, "stopSequences"), "expected a list of strings")
    return sequences


def _logprobs(config: Json) -> Json:
    if not optional_flag(config, "responseLogprobs", _PLACE):
        return {}
    alternatives = optional_whole_number(config, "logprobs", _PLACE, minimum=0, maximum=20)
    return {"logprobs": True, **({"top_logprobs": alternatives} if alternatives else {})}


def _modalities(config: Json) -> Json:
    modalities = config.get("responseModalities") or []
    if not isinstance(modalities, list) or not all(isinstance(one, str) for one in modalities):
        raise invalid(field_of(_PLACE, "responseModalities"), "expected a list of strings")
    named = [one.lower() for one in modalities]
    return {"modalities": named} if named and named != ["text"] else {}


def _format(config: Json, untranslatable: list[str]) -> Json:
    media_type = optional_text(config, "responseMimeType", _PLACE)
    schema = config.get("responseJsonSchema")
    if schema is None and (older := config.get("responseSchema")) is not None:
        schema = json_schema(older)
    if media_type not in (None, "", _JSON, _TEXT):
        untranslatable.append(f"{_PLACE}.responseMimeType: a chat completion has no answers of type {media_type}")
        return {}
    if schema is not None:
        if not isinstance(schema, dict):
            raise invalid(field_of(_PLACE, "responseSchema"), "expected an object")
        return {"response_format": {"type": "json_schema", "json_schema": {"name": _SCHEMA_NAME, "schema": schema}}}
    return {"response_format": {"type": "json_object"}} if media_type == _JSON else {}


def _thinking(config: Json) -> tuple[Json, bool]:
    settings = optional_message(config, _THINKING, _PLACE)
    if settings is None:
        return {}, False
    place = field_of(_PLACE, _THINKING)
    made: Json = {_THINKING: settings}
    budget = optional_whole_number(settings, "thinkingBudget", place, minimum=_DYNAMIC, maximum=_MAX_TOKENS)
    level = (optional_text(settings, "thinkingLevel", place) or _UNSPECIFIED).upper()
    if level in _LEVELS:
        made["reasoning_effort"] = _LEVELS[level]
    elif level != _UNSPECIFIED:
        raise invalid(f"{place}.thinkingLevel", f"expected one of {', '.join(_LEVELS)}")
    elif budget is not None and budget > 0:
        made["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif budget == 0:
        made["thinking"] = {"type": "disabled"}
    elif budget == _DYNAMIC:
        made["thinking"] = {"type": "adaptive"}
    return made, bool(optional_flag(settings, "includeThoughts", place))
