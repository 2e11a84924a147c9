"""Tries an evaluator on requests of the log: the scores that it would give, and what they cost. Nothing is kept but the
judge's own requests, which the log lists like any others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from analytics.evaluators.definitions import Definition
from analytics.queries.requests import Payload, RequestRow, get_payload, get_request
from core.api.authentication import key_id_of
from gateway.evaluations.evaluate import Asked, Evaluation, evaluate
from gateway.evaluations.rules import Answer
from gateway.runtime.runtime import Runtime
from gateway.worker.current import on_loop

MAX_REQUESTS = 20
_AT_ONCE = 4

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Tried:
    """The outcome of one request. `evaluation` has the reason where it could not be scored."""

    request_id: UUID
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class _Stored:
    answer: Answer
    schema: Mapping[str, Any] | None


def try_evaluator(
    *, project_id: UUID, definition: Definition, request_ids: Sequence[UUID], actor: str, expected: Any = None
) -> list[Tried]:
    """Returns the outcomes in the order of the requests. Raises the errors of the store."""
    found = {request_id: _stored(project_id, request_id, expected) for request_id in request_ids}
    stored = {request_id: one for request_id, one in found.items() if isinstance(one, _Stored)}
    scored = {request_id: one for request_id, one in found.items() if isinstance(one, Evaluation)}
    if stored:
        scored |= on_loop(partial(_score_all, project_id=project_id, definition=definition, stored=stored, actor=actor))
    return [Tried(request_id, scored[request_id]) for request_id in request_ids]


async def _score_all(
    runtime: Runtime,
    *,
    project_id: UUID,
    definition: Definition,
    stored: Mapping[UUID, _Stored],
    actor: str,
) -> dict[UUID, Evaluation]:
    snapshot = await runtime.snapshots.project(project_id)
    places = asyncio.Semaphore(_AT_ONCE)

    async def score(request_id: UUID, found: _Stored) -> Evaluation:
        asked = Asked(runtime, snapshot, str(request_id), key_id_of(actor), found.schema)
        async with places:
            return await evaluate(asked, definition, found.answer)

    scores = await asyncio.gather(*(score(*item) for item in stored.items()))
    return dict(zip(stored, scores, strict=True))


def _stored(project_id: UUID, request_id: UUID, expected: Any) -> _Stored | Evaluation:
    row = get_request(project_id, request_id)
    if row is None:
        return Evaluation(None, "request_not_found", "There is no such request in this project.")
    payload = get_payload(project_id, row)
    if payload is None:
        return Evaluation(None, "no_text", "The texts of this request are not stored.")
    return _read(row, payload, expected)


def _read(row: RequestRow, payload: Payload, expected: Any) -> _Stored | Evaluation:
    """Reads the bodies of a chat completion."""
    try:
        request, response = _decode(payload.request), _decode(payload.response)
        message = response["choices"][0]["message"]
        messages = request["messages"]
    except (msgspec.DecodeError, LookupError, TypeError, RecursionError):
        return Evaluation(None, "unreadable", "The stored bodies are no chat completion with an answer.")
    if not isinstance(message, dict) or not isinstance(messages, list):
        return Evaluation(None, "unreadable", "The stored bodies are no chat completion with an answer.")
    answer = Answer(message, messages, expected, row.finish_reason, row.completion_tokens)
    return _Stored(answer, schema_of(request))


def schema_of(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the JSON schema that a chat completion asks its answer to keep."""
    given = request.get("response_format")
    contract = given.get("json_schema") if isinstance(given, Mapping) else None
    schema = contract.get("schema") if isinstance(contract, Mapping) else None
    return schema if isinstance(schema, Mapping) else None
