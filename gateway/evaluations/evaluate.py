"""Scores one answer by one version of an evaluator. A missing score is None with a reason; nothing raises.

A question to a model is a request of the gateway with the source `judge`, within its project's limits and budgets.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from gateway.evaluations.rules import NO_EXPECTED, Answer, Evaluation, score_by_rule
from gateway.judging.form import Form, form_of
from gateway.judging.judge import NO_JUDGE, ask_judge, content_of, judge_answer, unreadable
from gateway.judging.pairwise import Preference, agreed, comparison_request, read_preference
from gateway.judging.rubric import UnreadableGradesError, expected_text, judge_request
from gateway.pipeline.internal_client import InternalAnswer, Reported
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.operations import EMBEDDINGS

_OUT_OF_BUDGET = "monthly_budget_exceeded"
_POINTS = {Preference.FIRST: 1.0, Preference.TIE: 0.5, Preference.SECOND: 0.0}


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks for scores: the process's runtime, the project, the scored request, and the API key that is charged, 0
    for none. `schema` is the one that the request asked the answer to keep."""

    runtime: Runtime
    snapshot: ProjectSnapshot
    request_id: str
    key_id: int = 0

    async def judge(self, body: bytes, surface: Surface = CHAT) -> InternalAnswer:
        return await ask_judge(
            self.runtime,
            self.snapshot,
            body,
            request_id=self.request_id,
            seconds=settings.JUDGE_SECONDS,
            key_id=self.key_id,
            surface=surface,
        )


@singledispatch
async def evaluate(definition: Definition, asked: Asked, answer: Answer) -> Evaluation:
    """Returns the score of an answer."""
    return score_by_rule(definition, answer)


@evaluate.register
async def _by_schema(definition: JsonSchema, asked: Asked, answer: Answer) -> Evaluation:
    schema = definition.schema if definition.schema is not None else answer.schema
    if schema is None:
        return Evaluation(None, "no_schema", "Neither the evaluator nor the request has a schema.")
    try:
        found = await check_lanes.violation(asked.snapshot.project_id, msgspec.json.encode(schema), [answer.text])
    except CheckTooLongError:
        return Evaluation(None, "schema_too_slow", "The schema took too long to check.")
    return Evaluation(1.0) if found is None else Evaluation(0.0, found[1])


@evaluate.register
async def _by_judge(definition: Judge, asked: Asked, answer: Answer) -> Evaluation:
    result = await judge_answer(
        asked.runtime,
        asked.snapshot,
        answer.messages,
        answer.message,
        request_id=asked.request_id,
        seconds=settings.JUDGE_SECONDS,
        key_id=asked.key_id,
        criteria=definition.criteria,
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


@evaluate.register
async def _by_similarity(definition: Similarity, asked: Asked, answer: Answer) -> Evaluation:
    if answer.expected is None:
        return NO_EXPECTED
    body = _embeddings_body(definition, answer)
    if body is None:
        return Evaluation(0.0, "One of the texts is empty.")
    given = await asked.judge(body, EMBEDDINGS)
    if given.error is not None:
        return _failed(given.error, [given])
    cosine = _cosine(given.completion or {})
    if cosine is None:
        return _paid(Evaluation(None, "judge_failed", "The provider's answer has no two vectors of one size."), [given])
    return _paid(Evaluation(min(max(cosine, 0.0), 1.0)), [given])


@evaluate.register
async def _by_pair(definition: Pairwise, asked: Asked, answer: Answer) -> Evaluation:
    """Returns 1 where the answer is better than the other one, 0 where it is worse, and 0.5 where they are alike or the
    judge changes its mind with the order."""
    if answer.other is None:
        return Evaluation(None, "needs_two_answers", "Only an experiment compares two answers.")
    model = definition.model or asked.snapshot.settings.judge_model
    if not model:
        return _failed(NO_JUDGE, [])
    form = form_of(asked.snapshot, model, definition.max_tokens)
    given = await asyncio.gather(*map(asked.judge, _comparisons(definition, model, form, answer)))
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


@evaluate.register
async def _by_users(definition: UserFeedback, asked: Asked, answer: Answer) -> Evaluation:
    return Evaluation(None, "needs_users", "Only an online evaluation counts what users say of an answer.")


@dataclass(frozen=True, slots=True)
class Question:
    """A request that an evaluator makes. `answers`: its model answers in words, not in vectors."""

    body: bytes
    answers: bool = True


def questions_of(definition: Definition, answer: Answer, snapshot: ProjectSnapshot) -> list[Question]:
    """Returns the requests that `evaluate` makes, so that their cost is known before."""
    if isinstance(definition, Judge | Pairwise):
        model = definition.model or snapshot.settings.judge_model
        form = form_of(snapshot, model, definition.max_tokens)
        if not model:
            return []
        if isinstance(definition, Pairwise):
            return [Question(body) for body in _comparisons(definition, model, form, answer)]
        expected = answer.expected if definition.sees_expected else None
        body = judge_request(model, answer.messages, answer.message, definition.criteria, expected=expected, form=form)
        return [Question(body)]
    if isinstance(definition, Similarity) and answer.expected is not None:
        found = _embeddings_body(definition, answer)
        return [Question(found, answers=False)] if found is not None else []
    return []


def _comparisons(definition: Pairwise, model: str, form: Form, answer: Answer) -> list[bytes]:
    if answer.other is None:
        return []
    expected = answer.expected if definition.sees_expected else None
    orders = [(answer.message, answer.other), (answer.other, answer.message)]
    return [
        comparison_request(model, definition.question, answer.messages, first, second, expected=expected, form=form)
        for first, second in orders
    ]


def _embeddings_body(definition: Similarity, answer: Answer) -> bytes | None:
    texts = [answer.text, expected_text(answer.expected)]
    if not all(text.strip() for text in texts):
        return None
    return msgspec.json.encode({"model": definition.model, "input": texts, "encoding_format": "float"})


def _failed(error: Reported, asked: Sequence[InternalAnswer | None]) -> Evaluation:
    reasons = {_OUT_OF_BUDGET: "budget", NO_JUDGE.code: NO_JUDGE.code}
    reason = reasons.get(error.code, "judge_failed")
    return _paid(Evaluation(None, reason, error.message, error=error), asked)


def _paid(evaluation: Evaluation, asked: Sequence[InternalAnswer | None]) -> Evaluation:
    requests = [one for one in asked if one is not None]
    costs = [one.cost_usd for one in requests]
    known = [cost for cost in costs if cost is not None]
    answered = [one.record.model for one in requests if one.record is not None]
    return replace(
        evaluation,
        cost_usd=sum(known, Decimal(0)) if len(known) == len(costs) else None,
        request_ids=tuple(one.request_id for one in requests),
        judge_model=answered[-1] if answered else "",
    )


class _Vector(msgspec.Struct):
    embedding: list[float]


class _Embeddings(msgspec.Struct):
    data: list[_Vector]


def _cosine(embeddings: Mapping[str, Any]) -> float | None:
    try:
        one, other = (row.embedding for row in msgspec.convert(embeddings, _Embeddings).data)
        length = math.hypot(*one) * math.hypot(*other)
        return math.fsum(a * b for a, b in zip(one, other, strict=True)) / length if length else None
    except (msgspec.ValidationError, ValueError, OverflowError):
        return None
