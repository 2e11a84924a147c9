"""The judge's requests have the source `judge` in the request log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from analytics.evaluators.definitions import Criterion
from analytics.request_log import quoting
from gateway.judging.form import Form, form_of
from gateway.judging.rubric import CRITERIA, Grade, UnreadableGradesError, judge_request, read_grades
from gateway.pipeline.internal_client import Caller, InternalAnswer, Reported, ask
from gateway.project_settings.guardrails import NO_GUARDRAILS
from gateway.runtime.runtime import OverallGrade, Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT

NO_JUDGE = Reported(
    400, "invalid_request_error", "no_judge_model", "judge_model: the project's settings name no judge model"
)

_OVERALL = Criterion("quality", "taken all in all, a good answer: right, complete, clear, to the point", [])


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """The grades by criterion, empty on an `error`. `answer` is the result of the judge's own request."""

    model: str
    grades: Mapping[str, Grade] = field(default_factory=dict)
    error: Reported | None = None
    answer: InternalAnswer | None = None


async def judge_answer(
    runtime: Runtime,
    snapshot: ProjectSnapshot,
    messages: Iterable[Any],
    answer: Mapping[str, Any],
    *,
    request_id: str,
    seconds: float,
    key_id: int = 0,
    criteria: Iterable[Criterion] = CRITERIA,
    model: str = "",
    max_tokens: int | None = None,
    expected: Any = None,
) -> JudgeResult:
    """Grades `answer`, the assistant's reply to `messages`.

    Never raises for a failed judge: the result's `error` says why there are no grades. `request_id` is the judged
    request's; an empty `model` is the project's `judge_model`.
    """
    model = model or snapshot.settings.judge_model
    if not model:
        return JudgeResult(model, error=NO_JUDGE)
    chosen = tuple(criteria)
    form = form_of(snapshot, model, max_tokens)
    body = judge_request(model, messages, answer, chosen, expected=expected, form=form)
    answered = await ask_judge(runtime, snapshot, body, request_id=request_id, seconds=seconds, key_id=key_id)
    if answered.error is not None:
        return JudgeResult(model, error=answered.error, answer=answered)
    try:
        return JudgeResult(model, read_grades(content_of(answered), chosen), answer=answered)
    except UnreadableGradesError as problem:
        return JudgeResult(model, error=unreadable(problem, form, [answered]), answer=answered)


async def ask_judge(
    runtime: Runtime,
    snapshot: ProjectSnapshot,
    body: bytes,
    *,
    request_id: str,
    seconds: float,
    key_id: int = 0,
    surface: Surface = CHAT,
) -> InternalAnswer:
    caller = Caller(quoting.JUDGE, key_id, attributes={quoting.JUDGED_REQUEST: request_id})
    return await ask(runtime, _unguarded(snapshot), caller, body, seconds=seconds, surface=surface)


def unreadable(problem: UnreadableGradesError, form: Form, answers: Iterable[InternalAnswer]) -> Reported:
    words = str(problem)
    if any(_first_choice(answer).get("finish_reason") == "length" for answer in answers):
        words = (
            f"the judge's answer was cut after {form.max_tokens:,} tokens: raise the evaluator's max_tokens ({words})"
        )
    return Reported(503, "service_unavailable_error", "invalid_judgement", words)


async def grade_overall(
    runtime: Runtime,
    snapshot: ProjectSnapshot,
    messages: Iterable[Any],
    answer: Mapping[str, Any],
    *,
    request_id: str,
    seconds: float,
) -> OverallGrade:
    """One grade for the whole `answer`, or why there is none. The parameters are those of `judge_answer`."""
    judgement = await judge_answer(
        runtime, snapshot, messages, answer, request_id=request_id, seconds=seconds, criteria=(_OVERALL,)
    )
    if judgement.error is not None:
        return OverallGrade(None, judgement.error.message)
    return OverallGrade(judgement.grades[_OVERALL.name].score)


def _unguarded(snapshot: ProjectSnapshot) -> ProjectSnapshot:
    """Removes guardrails: the judge's input has passed them, and its answer must not be judged in turn."""
    if not snapshot.settings.guardrails.is_on:
        return snapshot
    return replace(snapshot, settings=structs.replace(snapshot.settings, guardrails=NO_GUARDRAILS))


def content_of(answer: InternalAnswer) -> Any:
    return (_first_choice(answer).get("message") or {}).get("content")


def _first_choice(answer: InternalAnswer) -> Mapping[str, Any]:
    choices = (answer.completion or {}).get("choices") or [{}]
    found: Mapping[str, Any] = choices[0]
    return found
