"""Writes the body of a chat completion, fitted to its provider, as one of the Responses API
(https://developers.openai.com/api/docs/guides/migrate-to-responses)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.openai.responses_items import input_items

Json = dict[str, Any]

ENCRYPTED = "reasoning.encrypted_content"
# https://developers.openai.com/api/reference/resources/responses/methods/create: "integer below minimum value"
_MIN_OUTPUT_TOKENS = 16
# An answer would be of another kind without these fields, unless they have these values.
_OF_KIND: Mapping[str, Any] = {"n": 1, "modalities": ["text"], "audio": None}
# The Responses API does not have these fields, each with its value that has no effect.
_WITHOUT_EFFECT: Mapping[str, Any] = {
    "logprobs": False,
    "top_logprobs": 0,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logit_bias": {},
    "stop": [],
    "seed": None,
    "prediction": None,
}
_NO_COUNTERPART = "the Responses API has no counterpart"
_ANY_OBJECT: Mapping[str, Any] = {"type": "object", "properties": {}}


def kind_of_answer(fields: Mapping[str, Any]) -> str:
    """Returns the name of a field by which the answer is of a kind that the API does not have, empty without one."""
    return next(iter(_effective(fields, _OF_KIND)), "")


def responses_body(fields: Json, *, summary: bool, provider: str) -> tuple[Json, tuple[str, ...]]:
    """Returns the body and the warnings. `summary` means that the client wants to read the reasoning. What is known to
    both APIs keeps its name, and so does what the gateway does not know. Raises UnsupportedParameterError."""
    if refused := kind_of_answer(fields):
        raise UnsupportedParameterError(refused, "the Responses API does not have it", provider=provider)
    warnings = [f"{name}: dropped, {_NO_COUNTERPART}" for name in _effective(fields, _WITHOUT_EFFECT)]
    moved = {"messages", "max_tokens", "max_completion_tokens", "reasoning_effort", "verbosity", "response_format"}
    gone = {*moved, *_OF_KIND, *_WITHOUT_EFFECT, "stream_options", "tools", "tool_choice"}
    made: Json = {name: value for name, value in fields.items() if name not in gone and value is not None}
    made["input"] = input_items(fields["messages"])
    if (limit := _limit(fields)) is not None:
        made["max_output_tokens"] = max(limit, _MIN_OUTPUT_TOKENS)
        if limit < _MIN_OUTPUT_TOKENS:
            warnings.append(f"max_completion_tokens: {limit} became {_MIN_OUTPUT_TOKENS}, the least there is")
    made |= _objects(fields, summary=summary)
    if fields.get("tools"):
        made["tools"] = [_tool(tool) for tool in fields["tools"]]
    if fields.get("tool_choice") is not None:
        made["tool_choice"] = _choice(fields["tool_choice"])
    if any(message.get("name") for message in fields["messages"] if message.get("role") != "tool"):
        warnings.append(f"messages.name: dropped, {_NO_COUNTERPART}")
    made.setdefault("store", False)
    made["include"] = [ENCRYPTED]
    return made, tuple(warnings)


def _effective(fields: Mapping[str, Any], idle: Mapping[str, Any]) -> list[str]:
    """Returns the names of those fields whose value is another than the `idle` one."""
    return [name for name, value in idle.items() if fields.get(name) is not None and fields[name] != value]


def _limit(fields: Mapping[str, Any]) -> int | None:
    newer = fields.get("max_completion_tokens")
    limit: int | None = fields.get("max_tokens") if newer is None else newer
    return limit


def _objects(fields: Mapping[str, Any], *, summary: bool) -> Json:
    """Returns the objects that hold several fields of a chat completion."""
    reasoning: Json = {"effort": fields.get("reasoning_effort"), "summary": "auto" if summary else None}
    text: Json = {"format": _format(fields.get("response_format")), "verbosity": fields.get("verbosity")}
    streamed = fields.get("stream_options")
    options = {name: value for name, value in (streamed or {}).items() if name != "include_usage"}
    objects = {"reasoning": reasoning, "text": text, "stream_options": options}
    filled = {name: {key: value for key, value in held.items() if value is not None} for name, held in objects.items()}
    return {name: held for name, held in filled.items() if held}


def _format(form: Any) -> Any:
    if not isinstance(form, Mapping) or form.get("type") != "json_schema":
        return form
    return {"type": "json_schema", **(form.get("json_schema") or {})}


def _tool(tool: Mapping[str, Any]) -> Any:
    kind = tool.get("type", "function")
    inner = tool.get(kind) if isinstance(kind, str) else None
    if not isinstance(inner, Mapping):
        return tool
    made: Json = {"type": kind, **{name: value for name, value in inner.items() if value is not None}}
    if kind == "function":
        made["parameters"] = made.get("parameters") or _ANY_OBJECT
        # A function is strict there unless the request says otherwise, and is not in a chat completion.
        made.setdefault("strict", False)
    elif isinstance(form := made.get("format"), Mapping) and isinstance(grammar := form.get("grammar"), Mapping):
        made["format"] = {"type": "grammar", **grammar}
    return made


def _choice(choice: Any) -> Any:
    if not isinstance(choice, Mapping):
        return choice
    inner = choice.get(str(choice.get("type")))
    if not isinstance(inner, Mapping):
        return choice
    made: Json = {"type": choice["type"], **inner}
    if choice["type"] == "allowed_tools":
        made["tools"] = [_choice(tool) for tool in inner.get("tools") or ()]
    return made
