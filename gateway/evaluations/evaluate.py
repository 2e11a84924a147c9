"""Scores one answer by one version of an evaluator. A score that cannot be had is None with a reason; nothing raises.

What asks a model is a request of the gateway with the source `judge`, within the limits and budgets of its project.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import singledispatch
from typing import Any

import msgspec
from django.conf import settings

from analytics.evaluators.definitions import (
    Definition,
    JsonSchema,
    Judge,
    Pairwise,
    Similarity,
    UserFeedback,
)
from gateway.contract.checker_process import CheckTooLongError
from gateway.contract.lanes import check_lanes
from gateway.evaluations.rules import NO_EXPECTED, Answer, Score, score_by_rule
from gateway.judging.form import Form, form_of
from gateway.judging.judge import NO_JUDGE, ask_judge, content_of, judge_answer, unreadable
from gateway.judging.pairwise import Preference, agreed, comparison_request, read_preference
from gateway.judging.rubric import Criterion, UnreadableGradesError, expected_text, judge_request
from gateway.pipeline.internal_client import InternalAnswer, Reported
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.surfaces.operations.embeddings import SURFACE as EMBEDDINGS

_OUT_OF_BUDGET = "monthly_budget_exceeded"
_POINTS = {Preference.FIRST: 1.0, Preference.TIE: 0.5, Preference.SECOND: 0.0}


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks for scores: the process's runtime, the project, the request whose answer is scored, and the API key on
    whose account models are asked, 0 for none. `schema` is the one that the request asked the answer to keep."""

    runtime: Runtime
    snapshot: ProjectSnapshot
    request_id: str
    key_id: int = 0
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The outcome of an evaluator: a score from 0 to 1, or None with the `reason` why there is none and its `detail`.

    `cost_usd` is what models cost that were asked, None where a price is not known; `request_ids` are their requests.
    `judge_model` is the one that answered last, and `error` the failure of such a request.
    """

    score: float | None
    reason: str = ""
    detail: str = ""
    cost_usd: Decimal | None = Decimal(0)
    request_ids: tuple[str, ...] = ()
    judge_model: str = ""
    error: Reported | None = field(default=None, compare=False)


async def evaluate(asked: Asked, definition: Definition, answer: Answer) -> Evaluation:
    """Returns the score of an answer. A pairwise evaluator needs two: `compare`."""
    return await _evaluate(definition, asked, answer)


@singledispatch
async def _evaluate(definition: Definition, asked: Asked, answer: Answer) -> Evaluation:
    return _of(score_by_rule(definition, answer))


@_evaluate.register
async def _by_schema(definition: JsonSchema, asked: Asked, answer: Answer) -> Evaluation:
    schema = definition.schema if definition.schema is not None else asked.schema
    if schema is None:
        return Evaluation(None, "no_schema", "Neither the evaluator nor the request has a schema.")
    try:
        found = await check_lanes.violation(asked.snapshot.project_id, msgspec.json.encode(schema), [answer.text])
    except CheckTooLongError:
        return Evaluation(None, "schema_too_slow", "The schema took too long to check.")
    return Evaluation(1.0) if found is None else Evaluation(0.0, found[1])


@_evaluate.register
async def _by_judge(definition: Judge, asked: Asked, answer: Answer) -> Evaluation:
    result = await judge_answer(
        asked.runtime,
        asked.snapshot,
        answer.messages,
        answer.message,
        request_id=asked.request_id,
        seconds=settings.JUDGE_SECONDS,
        key_id=asked.key_id,
        criteria=_criteria(definition),
        model=definition.model,
        max_tokens=definition.max_tokens,
        expected=answer.expected if definition.sees_expected else None,
    )
    if result.error is not None:
        return _failed(result.error, [result.answer])
    grades = result.grades
    score = math.fsum(grade.score for grade in grades.values()) / len(grades)
    reason = "; ".join(f"{name}: {grade.label}" for name, grade in grades.items())
    detail = "\n".join(f"{name}: {grade.reason}" for name, grade in grades.items() if grade.reason)
    return _paid(Evaluation(score, reason, detail), [result.answer])


@_evaluate.register
async def _by_similarity(definition: Similarity, asked: Asked, answer: Answer) -> Evaluation:
    if answer.expected is None:
        return _of(NO_EXPECTED)
    body = _embeddings_body(definition, answer)
    if body is None:
        return Evaluation(0.0, "One of the texts is empty.")
    given = await ask_judge(
        asked.runtime,
        asked.snapshot,
        body,
        request_id=asked.request_id,
        seconds=settings.JUDGE_SECONDS,
        key_id=asked.key_id,
        surface=EMBEDDINGS,
    )
    if given.error is not None:
        return _failed(given.error, [given])
    cosine = _cosine(given.completion or {})
    if cosine is None:
        return _paid(Evaluation(None, "judge_failed", "The provider's answer has no two vectors of one size."), [given])
    return _paid(Evaluation(min(max(cosine, 0.0), 1.0)), [given])


@_evaluate.register
async def _by_pair(definition: Pairwise, asked: Asked, answer: Answer) -> Evaluation:
    return Evaluation(None, "needs_two_answers", "Only an experiment compares two answers.")


@_evaluate.register
async def _by_users(definition: UserFeedback, asked: Asked, answer: Answer) -> Evaluation:
    return Evaluation(None, "needs_users", "Only an online evaluation counts what users say of an answer.")


async def compare(asked: Asked, definition: Pairwise, answer: Answer, other: Mapping[str, Any]) -> Evaluation:
    """Returns 1 where `answer` is better than the message `other`, 0 where it is worse, and 0.5 where they are alike or
    the judge changes its mind with the order."""
    model = definition.model or asked.snapshot.settings.judge_model
    if not model:
        return _failed(NO_JUDGE, [])
    form = form_of(asked.snapshot, model, definition.max_tokens)
    given = await asyncio.gather(
        *(
            ask_judge(
                asked.runtime,
                asked.snapshot,
                body,
                request_id=asked.request_id,
                seconds=settings.JUDGE_SECONDS,
                key_id=asked.key_id,
            )
            for body in _comparisons(definition, model, form, answer, other)
        )
    )
    for one in given:
        if one.error is not None:
            return _failed(one.error, given)
    try:
        (preferred, reason), (turned, other_reason) = (read_preference(content_of(one)) for one in given)
    except UnreadableGradesError as problem:
        return _failed(unreadable(problem, form, given), given)
    found = agreed(preferred, turned)
    detail = "\n".join(filter(None, (reason, other_reason)))
    return _paid(Evaluation(_POINTS[found], str(found), detail), given)


@dataclass(frozen=True, slots=True)
class Question:
    """A request that an evaluator makes. `answers` says whether its model answers in words, and not in vectors."""

    body: bytes
    answers: bool = True


def questions_of(
    definition: Definition, answer: Answer, snapshot: ProjectSnapshot, other: Mapping[str, Any] | None = None
) -> list[Question]:
    """Returns the requests that `evaluate` makes, or `compare` with `other`, so that their cost is known before."""
    if isinstance(definition, Judge | Pairwise):
        model = definition.model or snapshot.settings.judge_model
        form = form_of(snapshot, model, definition.max_tokens)
        if not model:
            return []
        if isinstance(definition, Pairwise):
            bodies = _comparisons(definition, model, form, answer, other) if other is not None else []
            return [Question(body) for body in bodies]
        expected = answer.expected if definition.sees_expected else None
        body = judge_request(
            model, answer.messages, answer.message, _criteria(definition), expected=expected, form=form
        )
        return [Question(body)]
    if isinstance(definition, Similarity) and answer.expected is not None:
        found = _embeddings_body(definition, answer)
        return [Question(found, answers=False)] if found is not None else []
    return []


def _criteria(definition: Judge) -> list[Criterion]:
    return [Criterion(one.name, one.meaning, tuple(one.labels)) for one in definition.criteria]


def _comparisons(definition: Pairwise, model: str, form: Form, answer: Answer, other: Mapping[str, Any]) -> list[bytes]:
    """Returns the comparison in both orders."""
    expected = answer.expected if definition.sees_expected else None
    orders = [(answer.message, other), (other, answer.message)]
    return [
        comparison_request(model, definition.question, answer.messages, first, second, expected=expected, form=form)
        for first, second in orders
    ]


def _embeddings_body(definition: Similarity, answer: Answer) -> bytes | None:
    """Returns the request for the two vectors; None where a text is empty."""
    texts = [answer.text, expected_text(answer.expected)]
    if not all(text.strip() for text in texts):
        return None
    return msgspec.json.encode({"model": definition.model, "input": texts, "encoding_format": "float"})


def _of(score: Score) -> Evaluation:
    return Evaluation(score.value, score.reason)


def _failed(error: Reported, asked: Sequence[InternalAnswer | None]) -> Evaluation:
    reasons = {_OUT_OF_BUDGET: "budget", NO_JUDGE.code: NO_JUDGE.code}
    reason = reasons.get(error.code, "judge_failed")
    return _paid(Evaluation(None, reason, error.message, error=error), asked)


def _paid(evaluation: Evaluation, asked: Sequence[InternalAnswer | None]) -> Evaluation:
    """Returns the evaluation with what its requests cost."""
    requests = [one for one in asked if one is not None]
    cost: Decimal | None = Decimal(0)
    for one in requests:
        record = one.record
        if cost is None or record is None or not record.cost_known:
            # A request that reached no provider cost nothing, one whose record is not there yet may have.
            cost = cost if record is not None and not record.cost_usd and one.error is not None else None
        else:
            cost += Decimal(record.cost_usd or 0)
    answered = [one.record.model for one in requests if one.record is not None]
    return replace(
        evaluation,
        cost_usd=cost,
        request_ids=tuple(one.request_id for one in requests),
        judge_model=answered[-1] if answered else "",
    )


class _Vector(msgspec.Struct):
    embedding: list[float]


class _Embeddings(msgspec.Struct):
    data: list[_Vector]


def _cosine(embeddings: Mapping[str, Any]) -> float | None:
    """Returns the cosine of the two vectors of an answer; None where there are no two of one size."""
    try:
        one, other = (row.embedding for row in msgspec.convert(embeddings, _Embeddings).data)
        length = math.hypot(*one) * math.hypot(*other)
        return math.fsum(a * b for a, b in zip(one, other, strict=True)) / length if length else None
    except (msgspec.ValidationError, ValueError, OverflowError):
        return None
