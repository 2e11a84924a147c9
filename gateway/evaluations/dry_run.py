"""Tries an evaluator on logged requests; keeps only the judge's own requests, which the log lists."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from analytics.evaluators.definitions import Definition
from analytics.queries.requests import get_payload, get_request
from core.api.authentication import key_id_of
from gateway.evaluations.evaluate import Asked, evaluate
from gateway.evaluations.rules import Answer, Evaluation
from gateway.evaluations.stored import no_text, read_stored
from gateway.runtime.runtime import Runtime
from gateway.worker.current import on_loop
from gateway.worker.recording import may_ask

MAX_REQUESTS = 20
_AT_ONCE = 4


def try_evaluator(
    *, project_id: UUID, definition: Definition, request_ids: Sequence[UUID], actor: str, expected: Any = None
) -> dict[UUID, Evaluation]:
    """Returns the outcomes by request, in the order of these. Raises the errors of the store."""
    found = {request_id: _stored(project_id, request_id, expected) for request_id in request_ids}
    stored = {request_id: one for request_id, one in found.items() if isinstance(one, Answer)}
    scored = {request_id: one for request_id, one in found.items() if isinstance(one, Evaluation)}
    if stored:
        scored |= on_loop(partial(_score_all, project_id=project_id, definition=definition, stored=stored, actor=actor))
    return {request_id: scored[request_id] for request_id in request_ids}


async def _score_all(
    runtime: Runtime,
    *,
    project_id: UUID,
    definition: Definition,
    stored: Mapping[UUID, Answer],
    actor: str,
) -> dict[UUID, Evaluation]:
    snapshot = await runtime.snapshots.project(project_id)
    places = asyncio.Semaphore(_AT_ONCE)

    async def score(request_id: UUID, found: Answer) -> Evaluation:
        asked = Asked(runtime, snapshot, str(request_id), key_id_of(actor))
        async with places:
            if definition.asks_a_model and not may_ask(runtime.spool):
                return Evaluation(None, "disk_full", "The disk is full: the judge's request could not be recorded.")
            return await evaluate(definition, asked, found)

    scores = await asyncio.gather(*(score(*item) for item in stored.items()))
    return dict(zip(stored, scores, strict=True))


def _stored(project_id: UUID, request_id: UUID, expected: Any) -> Answer | Evaluation:
    row = get_request(project_id, request_id)
    if row is None:
        return Evaluation(None, "request_not_found", "There is no such request in this project.")
    payload = get_payload(project_id, row)
    if payload is None:
        return no_text()
    return read_stored(
        payload.request,
        payload.response,
        finish_reason=row.finish_reason,
        completion_tokens=row.completion_tokens,
        expected=expected,
    )
