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

from analytics.evaluators.definitions import Definition, JsonSchema, Judge, Pairwise, Similarity
from gateway.contract.checker_process import CheckTooLongError
from gateway.contract.lanes import check_lanes
from gateway.evaluations.rules import NO_EXPECTED, Answer, Score, score_by_rule
from gateway.judging.judge import NO_JUDGE, ask_judge, content_of, judge_answer, unreadable
from gateway.judging.pairwise import Preference, agreed, comparison_request, read_preference
from gateway.judging.rubric import Criterion, UnreadableGradesError, expected_text
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
    `error` is the failure of such a request.
    """

    score: float | None
    reason: str = ""
    detail: str = ""
    cost_usd: Decimal | None = Decimal(0)
    request_ids: tuple[str, ...] = ()
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
    criteria = [Criterion(one.name, one.meaning, tuple(one.labels)) for one in definition.criteria]
    result = await judge_answer(
        asked.runtime,
        asked.snapshot,
        answer.messages,
        answer.message,
        request_id=asked.request_id,
        seconds=settings.JUDGE_SECONDS,
        key_id=asked.key_id,
        criteria=criteria,
        model=definition.model,
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
    texts = [answer.text, expected_text(answer.expected)]
    if not all(text.strip() for text in texts):
        return Evaluation(0.0, "One of the texts is empty.")
    body = msgspec.json.encode({"model": definition.model, "input": texts, "encoding_format": "float"})
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


async def compare(asked: Asked, definition: Pairwise, answer: Answer, other: Mapping[str, Any]) -> Evaluation:
    """Returns 1 where `answer` is better than the message `other`, 0 where it is worse, and 0.5 where they are alike or
    the judge changes its mind with the order."""
    model = definition.model or asked.snapshot.settings.judge_model
    if not model:
        return _failed(NO_JUDGE, [])
    expected = answer.expected if definition.sees_expected else None
    orders = [(answer.message, other), (other, answer.message)]
    given = await asyncio.gather(
        *(
            ask_judge(
                asked.runtime,
                asked.snapshot,
                comparison_request(model, definition.question, answer.messages, first, second, expected=expected),
                request_id=asked.request_id,
                seconds=settings.JUDGE_SECONDS,
                key_id=asked.key_id,
            )
            for first, second in orders
        )
    )
    for one in given:
        if one.error is not None:
            return _failed(one.error, given)
    try:
        (preferred, reason), (turned, other_reason) = (read_preference(content_of(one)) for one in given)
    except UnreadableGradesError as problem:
        return _failed(unreadable(problem), given)
    found = agreed(preferred, turned)
    detail = "\n".join(filter(None, (reason, other_reason)))
    return _paid(Evaluation(_POINTS[found], str(found), detail), given)


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
    return replace(evaluation, cost_usd=cost, request_ids=tuple(one.request_id for one in requests))


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
