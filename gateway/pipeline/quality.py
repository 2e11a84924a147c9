"""Holds back answers that are not good enough for their project (`min_quality_score`, graded by `judge_model`).

In `enforce` the client waits for the grade, and one other attempt may answer instead. In `monitor` the client does not
wait: the grade becomes a score of the request. An answer that cannot be graded passes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from django.conf import settings

from core.errors import ApplicationError
from core.http.tracebacks import class_and_place
from core.processes.database_threads import in_database_thread
from gateway.errors import GuardrailError, LowQualityError
from gateway.guardrails.verdict_scores import record_verdicts
from gateway.guardrails.verdicts import Guardrail, GuardrailAction, GuardrailStage, GuardrailVerdict
from gateway.pipeline.context import AnswerState, Attempt, FailedCall, RequestContext, RequestState
from gateway.pipeline.record import completed_usage
from gateway.runtime.runtime import Runtime

T = TypeVar("T")

logger = logging.getLogger("gateway.request")

_MAX_SCORE = 100
_MAX_REASON_CHARACTERS = 200
# The number of answers that one worker grades at once in `monitor`; those that come meanwhile are not graded.
_MAX_AT_ONCE = 32
_grading: set[asyncio.Task[None]] = set()


class QualityCheck:
    __slots__ = ("_context", "_min_score", "_runtime", "_state")

    def __init__(self, runtime: Runtime, context: RequestContext, state: RequestState, min_score: float) -> None:
        self._runtime, self._context, self._state, self._min_score = runtime, context, state, min_score

    async def require(self, body: bytes) -> None:
        state = self._state
        seconds = min(settings.JUDGE_SECONDS, self._runtime.deadlines.left(state.started))
        verdict = await self._verdict(body, bad=GuardrailAction.BLOCKED, seconds=seconds)
        state.verdicts += (verdict,)
        if verdict.action is GuardrailAction.BLOCKED:
            raise LowQualityError(f"The answer was graded {verdict.detail}")

    def grade_later(self, body: bytes) -> None:
        if len(_grading) >= _MAX_AT_ONCE:
            logger.warning("quality.not_graded request_id=%s reason=busy", self._state.request_id)
            return
        task = asyncio.create_task(self._record_grade(body))
        _grading.add(task)
        task.add_done_callback(_grading.discard)

    async def _record_grade(self, body: bytes) -> None:
        state = self._state
        try:
            verdict = await self._verdict(body, bad=GuardrailAction.FLAGGED, seconds=settings.JUDGE_SECONDS)
            # The request's other verdicts are recorded here too: a request that has scores of guardrails is skipped
            # when those of its record are read.
            verdicts = {state.request_id: [*state.verdicts, verdict]}
            await in_database_thread(record_verdicts, self._context.snapshot.project_id, verdicts)
        except Exception as error:
            # No caller waits for this task, so its failure has to be logged here.
            logger.error("quality.failed request_id=%s error=%s", state.request_id, class_and_place(error))

    async def _verdict(self, body: bytes, *, bad: GuardrailAction, seconds: float) -> GuardrailVerdict:
        message = _first_message(body)
        if message is None:
            return _not_judged("the answer holds no message")
        grade = await self._runtime.judge(
            self._runtime,
            self._context.snapshot,
            self._context.fields["messages"],
            message,
            request_id=self._state.request_id,
            seconds=seconds,
        )
        score = grade.score
        if score is None:
            return _not_judged(grade.problem)
        action = bad if score < self._min_score else GuardrailAction.PASSED
        detail = f"{score:g} of {_MAX_SCORE}, at least {self._min_score:g} is wanted"
        return GuardrailVerdict(Guardrail.LOW_QUALITY, GuardrailStage.OUTPUT, action, detail, score / _MAX_SCORE)


def _not_judged(reason: str) -> GuardrailVerdict:
    detail = f"not judged: {reason[:_MAX_REASON_CHARACTERS]}"
    return GuardrailVerdict(Guardrail.LOW_QUALITY, GuardrailStage.OUTPUT, GuardrailAction.SKIPPED, detail, 0.0)


async def second_try(
    error: LowQualityError, state: RequestState, attempts: list[Attempt], call: Callable[[list[Attempt]], Awaitable[T]]
) -> T:
    left = _behind(state, attempts)
    if not left:
        raise error
    try:
        return await call(left)
    except GuardrailError:
        raise
    except ApplicationError as failure:
        raise error from failure


def _behind(state: RequestState, attempts: list[Attempt]) -> list[Attempt]:
    served = state.routing.provider, state.routing.model
    place = next((i for i, one in enumerate(attempts) if (one.provider, one.model) == served), None)
    left = [] if place is None else attempts[place + 1 :]
    if place is None or not left:
        return []
    seconds, usage = state.routing.served_seconds or 0.0, completed_usage(state, state.answer.usage)
    state.note_failure(attempts[place], FailedCall(seconds, 200, Guardrail.LOW_QUALITY.value, usage))
    state.routing.served_seconds = None
    state.answer = AnswerState()
    return left


class _Choice(msgspec.Struct):
    message: dict[str, Any]


class _Completion(msgspec.Struct):
    choices: list[_Choice]


_decode = msgspec.json.Decoder(_Completion).decode


def _first_message(body: bytes) -> dict[str, Any] | None:
    try:
        choices = _decode(body).choices
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return choices[0].message if choices else None
