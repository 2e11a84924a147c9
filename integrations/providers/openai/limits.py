"""Fits requests that were not written for OpenAI (on a fallback, from another protocol) to OpenAI's limits. Its
look-alikes have the same limits or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

Fields = dict[str, Any]

# Longer ids of calls are refused: `string_above_max_length`.
_MAX_ID_LENGTH = 40
# https://platform.openai.com/docs/api-reference/chat/create#chat-create-stop
MAX_STOPS = 4
# https://platform.openai.com/docs/api-reference/chat/create#chat-create-tools
MAX_TOOLS = 128
_JSON = "json"
_ANSWER_IN_JSON = "Answer in JSON."
_INSTRUCTING = ("system", "developer")
_SUBSCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SUBSCHEMA_MAPS = ("properties", "$defs", "definitions")


def fit_message(message: Fields) -> None:
    """Changes ids in place, and adds content if OpenAI requires some."""
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        message["tool_calls"] = [_with_short_id(call) for call in calls]
        if not calls:
            del message["tool_calls"]
    if isinstance(call_id := message.get("tool_call_id"), str):
        message["tool_call_id"] = short_id(call_id)
    is_said_otherwise = any(message.get(name) for name in ("tool_calls", "function_call", "refusal"))
    if message.get("content") in (None, []) and not is_said_otherwise:
        message["content"] = ""


def with_word_json(messages: list[Any]) -> list[Any]:
    """Adds a sentence with the word JSON to the first instructions; OpenAI refuses JSON mode without it
    (https://platform.openai.com/docs/guides/structured-outputs#json-mode)."""
    if any(_JSON in text.lower() for message in messages for text in _texts(message)):
        return messages
    first = messages[0] if messages and isinstance(messages[0], Mapping) else {}
    if first.get("role") not in _INSTRUCTING:
        return [{"role": "system", "content": _ANSWER_IN_JSON}, *messages]
    content = first.get("content")
    if isinstance(content, list):
        joined: Any = [*content, {"type": "text", "text": _ANSWER_IN_JSON}]
    else:
        joined = f"{content}\n\n{_ANSWER_IN_JSON}" if content else _ANSWER_IN_JSON
    return [{**first, "content": joined}, *messages[1:]]


def fit_function(function: Mapping[str, Any]) -> Fields:
    """OpenAI requires that an object names its properties and an array its items; `strict` stays only if the schema
    meets its conditions."""
    fitted = dict(function)
    if isinstance(parameters := function.get("parameters"), Mapping):
        fitted["parameters"] = _finished(parameters)
        if function.get("strict") is True and not is_closed(parameters):
            del fitted["strict"]
    return fitted


def is_closed(schema: Any) -> bool:
    """Whether the schema meets the conditions of strict mode: every object lists its properties, requires all of them,
    and allows no others (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas)."""
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        required, names = schema.get("required") or [], schema.get("properties") or {}
        if schema.get("additionalProperties") is not False or not isinstance(required, list):
            return False
        if not isinstance(names, Mapping) or sorted(names) != sorted(map(str, required)):
            return False
    return all(is_closed(inner) for inner in _subschemas(schema))


def _texts(message: Any) -> Iterator[str]:
    content = message.get("content") if isinstance(message, Mapping) else None
    for part in content if isinstance(content, list) else (content,):
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            yield text


def _with_short_id(call: Any) -> Any:
    if not isinstance(call, Mapping) or not isinstance(call_id := call.get("id"), str):
        return call
    return {**call, "id": short_id(call_id)}


def short_id(call_id: str) -> str:
    if len(call_id) <= _MAX_ID_LENGTH:
        return call_id
    return "call_" + blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _finished(schema: Mapping[str, Any]) -> Fields:
    made: Fields = {}
    for name, value in schema.items():
        if name in _SUBSCHEMA_MAPS and isinstance(value, Mapping):
            made[name] = {key: _inner(inner) for key, inner in value.items()}
        elif name in _SUBSCHEMAS and isinstance(value, list):
            made[name] = [_inner(inner) for inner in value]
        else:
            made[name] = _inner(value) if name == "items" else value
    if made.get("type") == "object":
        made.setdefault("properties", {})
    elif made.get("type") == "array":
        made.setdefault("items", {})
    return made


def _inner(schema: Any) -> Any:
    return _finished(schema) if isinstance(schema, Mapping) else schema


def _subschemas(schema: Mapping[str, Any]) -> list[Any]:
    found = [schema.get("items")]
    for name in _SUBSCHEMA_MAPS:
        found += (schema.get(name) or {}).values() if isinstance(schema.get(name), Mapping) else ()
    for name in _SUBSCHEMAS:
        found += schema[name] if isinstance(schema.get(name), list) else ()
    return found
