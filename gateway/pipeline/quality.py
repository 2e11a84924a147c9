"""Whether an answer is good enough for its project (`min_quality_score`, graded by `judge_model`).

In `enforce` the client waits for the grade, and one other attempt may answer instead of the first. In `monitor` nobody
waits: the grade becomes a score of the request when it is there. An answer that cannot be graded passes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from asgiref.sync import sync_to_async
from django.conf import settings

from core.errors import ApplicationError
from gateway.errors import GuardrailError, LowQualityError
from gateway.guardrails.verdicts import Guardrail, GuardrailAction, GuardrailStage, GuardrailVerdict
from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.pipeline.record import estimated_usage
from gateway.runtime import Runtime
from gateway.verdict_scores import record_verdicts

T = TypeVar("T")

logger = logging.getLogger("gateway.request")

_MAX_SCORE = 100
_MAX_REASON_CHARACTERS = 200
# Of one worker, in `monitor`; what comes while so many are being graded is not.
_MOST_AT_ONCE = 32
_grading: set[asyncio.Task[None]] = set()


async def hold_to(least: float, runtime: Runtime, context: RequestContext, state: RequestState, body: bytes) -> None:
    """Raises LowQualityError for a chat completion whose first choice is graded lower. The verdict is in `state`."""
    seconds = min(settings.JUDGE_SECONDS, runtime.deadlines.left(state.started))
    verdict = await _verdict(
        least, runtime, context, state.request_id, body, bad=GuardrailAction.BLOCKED, seconds=seconds
    )
    state.verdicts += (verdict,)
    if verdict.action is GuardrailAction.BLOCKED:
        raise LowQualityError(f"The answer was graded {verdict.detail}")


def grade_later(least: float, runtime: Runtime, context: RequestContext, state: RequestState, body: bytes) -> None:
    if len(_grading) >= _MOST_AT_ONCE:
        logger.warning("quality.not_graded request_id=%s reason=busy", state.request_id)
        return
    task = asyncio.create_task(_grade_aside(least, runtime, context, state, body))
    _grading.add(task)
    task.add_done_callback(_grading.discard)


async def second_try(
    error: LowQualityError, state: RequestState, attempts: list[Attempt], call: Callable[[list[Attempt]], Awaitable[T]]
) -> T:
    """The answer of another attempt. Raises `error` when nobody else is left, or can answer."""
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
    """The attempts behind the one whose answer was too bad, which becomes a failed one; empty when none is left."""
    place = next(
        (i for i, one in enumerate(attempts) if (one.provider, one.model) == (state.provider, state.model)), None
    )
    left = [] if place is None else attempts[place + 1 :]
    if place is None or not left:
        return []
    usage = state.usage or estimated_usage(state)
    state.note_failure(
        attempts[place], state.served_seconds or 0.0, status=200, error=Guardrail.LOW_QUALITY.value, usage=usage
    )
    state.usage, state.usage_estimated, state.served_seconds = None, False, None
    state.output_bytes, state.first_output, state.finish_reason = 0, 0.0, ""
    state.response.clear()
    return left


async def _verdict(
    least: float,
    runtime: Runtime,
    context: RequestContext,
    request_id: str,
    body: bytes,
    *,
    bad: GuardrailAction,
    seconds: float,
) -> GuardrailVerdict:
    message = _first_message(body)
    if message is None:
        return _not_judged("the answer holds no message")
    grade = await runtime.judge(
        runtime, context.snapshot, context.fields["messages"], message, request_id=request_id, seconds=seconds
    )
    score = grade.score
    if score is None:
        return _not_judged(grade.problem)
    detail = f"{score:g} of {_MAX_SCORE}, at least {least:g} is wanted"
    return GuardrailVerdict(
        Guardrail.LOW_QUALITY,
        GuardrailStage.OUTPUT,
        bad if score < least else GuardrailAction.PASSED,
        detail,
        score / _MAX_SCORE,
    )


def _not_judged(reason: str) -> GuardrailVerdict:
    return GuardrailVerdict(
        Guardrail.LOW_QUALITY,
        GuardrailStage.OUTPUT,
        GuardrailAction.SKIPPED,
        f"not judged: {reason[:_MAX_REASON_CHARACTERS]}",
        0.0,
    )


async def _grade_aside(
    least: float, runtime: Runtime, context: RequestContext, state: RequestState, body: bytes
) -> None:
    request_id = state.request_id
    try:
        verdict = await _verdict(
            least, runtime, context, request_id, body, bad=GuardrailAction.FLAGGED, seconds=settings.JUDGE_SECONDS
        )
        record = sync_to_async(record_verdicts, thread_sensitive=False)
        # With what the record says: a request that has scores of guardrails is not looked at again.
        await record(context.snapshot.project_id, {request_id: [*state.verdicts, verdict]})
    except Exception:
        # Nobody waits for it, and nothing else would tell.
        logger.exception("quality.failed request_id=%s", request_id)


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
