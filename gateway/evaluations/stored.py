"""Reads a stored request and its answer as evaluators see them: nothing in it names a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.evaluations.rules import Answer, Evaluation

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def read_stored(
    request: str, response: str, *, finish_reason: str, completion_tokens: int, expected: Any = None
) -> Answer | Evaluation:
    """Reads the bodies of a chat completion. Returns an evaluation that says why where they are none."""
    try:
        asked, answered = _decode(request), _decode(response)
        message = answered["choices"][0]["message"]
        messages = asked["messages"]
    except (msgspec.DecodeError, LookupError, TypeError, RecursionError):
        return _unreadable()
    if not isinstance(message, dict) or not isinstance(messages, list):
        return _unreadable()
    return Answer(message, messages, expected, finish_reason, completion_tokens, schema_of(asked))


def no_text() -> Evaluation:
    return Evaluation(None, "no_text", "The texts of this request are not stored.")


def schema_of(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    given = request.get("response_format")
    contract = given.get("json_schema") if isinstance(given, Mapping) else None
    schema = contract.get("schema") if isinstance(contract, Mapping) else None
    return schema if isinstance(schema, Mapping) else None


def _unreadable() -> Evaluation:
    return Evaluation(None, "unreadable", "The stored bodies are no chat completion with an answer.")
