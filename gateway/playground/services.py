from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import Error as DatabaseError

from analytics.models import EvaluatorType
from analytics.request_log.sources import Source
from analytics.scores.services import NewScore, record_scores
from core.api.authentication import key_id_of
from core.errors import ApplicationError
from core.http.tracebacks import class_and_place
from gateway.judging.judge import JudgeResult, judge_answer
from gateway.pipeline.internal_client import Caller, InternalAnswer, InternalRequest, Reported, ask
from gateway.playground.results import Result, error_of, message_of
from gateway.protocol import sse
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from prompts.selectors import PromptVersionRecord

logger = logging.getLogger("gateway.playground")

SOURCE = Source.PLAYGROUND.value
ACTOR = "actor"
"""The attribute of a record that says who used the playground: `key:<id>` or `user:<name>`."""

_JUDGE_FAILED = Reported(500, "api_error", "internal_error", "the judge failed; the failure is logged")
_NOT_STORED = Reported(503, "service_unavailable_error", "scores_not_kept", "the scores could not be stored")


@dataclass(frozen=True, slots=True)
class PlaygroundRun:
    project_id: UUID
    actor: str
    session_id: str
    messages: Sequence[Any]
    bodies: Mapping[str, bytes]
    evaluate: bool
    seconds: float
    version: PromptVersionRecord | None = None

    @property
    def key_id(self) -> int:
        return key_id_of(self.actor)

    @property
    def caller(self) -> Caller:
        return Caller(SOURCE, self.key_id, self.session_id, attributes={ACTOR: self.actor}, version=self.version)


async def run_all(runtime: Runtime, run: PlaygroundRun) -> list[Result]:
    """Runs every model at once; a failure or a timeout of a model becomes its result.

    Raises ServiceUnavailableError if the project's configuration cannot be read.
    """
    snapshot = await runtime.snapshots.project(run.project_id)
    calls = (_run_one(runtime, snapshot, run, model, body) for model, body in run.bodies.items())
    results = await asyncio.gather(*calls)
    return await with_stored_scores(run, snapshot, results)


async def stream_one(runtime: Runtime, run: PlaygroundRun) -> AsyncGenerator[bytes]:
    snapshot = await runtime.snapshots.project(run.project_id)
    ((model, body),) = run.bodies.items()
    request = InternalRequest(runtime, snapshot, run.caller, body, run.seconds)
    async with aclosing(request.parts()) as parts:
        async for part in parts:
            if part and request.is_streamed:
                yield part
    answer = request.answer()
    if answer.error is not None and not (request.is_streamed and request.is_complete):
        yield sse.frame(json.dumps({"error": error_of(answer.error)}).encode()) + sse.DONE
    (result,) = await with_stored_scores(run, snapshot, [await judged(runtime, snapshot, run, model, answer)])
    yield b"event: result\n" + sse.frame(json.dumps(result.shown()).encode())


async def streamed_whole(runtime: Runtime, run: PlaygroundRun) -> list[bytes]:
    return [part async for part in stream_one(runtime, run)]


async def _run_one(runtime: Runtime, snapshot: ProjectSnapshot, run: PlaygroundRun, model: str, body: bytes) -> Result:
    answer = await ask(runtime, snapshot, run.caller, body, seconds=run.seconds)
    return await judged(runtime, snapshot, run, model, answer)


async def judged(
    runtime: Runtime, snapshot: ProjectSnapshot, run: PlaygroundRun, model: str, answer: InternalAnswer
) -> Result:
    message = message_of(answer)
    if not run.evaluate or answer.error is not None or message is None:
        return Result(model, answer)
    try:
        judgement = await judge_answer(
            runtime,
            snapshot,
            run.messages,
            message,
            request_id=answer.request_id,
            seconds=settings.JUDGE_SECONDS,
            key_id=run.key_id,
        )
    except Exception as error:
        # The answer is there and paid for, so a defective judge does not fail the run.
        logger.error("judgement.failed request_id=%s error=%s", answer.request_id, class_and_place(error))
        judgement = JudgeResult(snapshot.settings.judge_model, error=_JUDGE_FAILED)
    return Result(model, answer, judgement)


async def with_stored_scores(run: PlaygroundRun, snapshot: ProjectSnapshot, results: list[Result]) -> list[Result]:
    scores = [score for result in results for score in _scores(result, reasons=snapshot.settings.log_content)]
    if not scores:
        return results
    try:
        await sync_to_async(record_scores)(project_id=run.project_id, scores=scores, actor=run.actor)
    except (ApplicationError, DatabaseError) as error:
        logger.error("scores.lost project_id=%s error=%s", run.project_id, type(error).__name__)
        return [_unkept(result) for result in results]
    return results


def _scores(result: Result, *, reasons: bool) -> list[NewScore]:
    """In a project that stores no texts, scores have no reason, which may quote one."""
    judgement = result.judgement
    return [
        NewScore(
            request_id=result.answer.request_id,
            score_name=name,
            score_value=grade.score,
            reason=grade.reason if reasons else "",
            evaluator_type=EvaluatorType.LLM_JUDGE,
        )
        for name, grade in (judgement.grades.items() if judgement is not None else ())
    ]


def _unkept(result: Result) -> Result:
    judgement = result.judgement
    if judgement is None or not judgement.grades:
        return result
    return replace(result, judgement=replace(judgement, error=_NOT_STORED))
