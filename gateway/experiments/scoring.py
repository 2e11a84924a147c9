from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from analytics.evaluators.definitions import Definition, JsonSchema, Pairwise, model_of
from core.errors import ApplicationError, ServiceUnavailableError
from core.ledger import NOTHING
from core.processes.database_threads import in_database_thread
from core.wire.storable import storable
from gateway.evaluations.evaluate import Asked, evaluate, questions_of
from gateway.evaluations.failures import (
    DEFAULT_WAIT_SECONDS,
    OUT_OF_BUDGET,
    is_limited,
    is_passing,
    is_too_long,
    seconds_of,
)
from gateway.evaluations.highest_cost import known_highest_cost
from gateway.evaluations.rules import Answer, Evaluation
from gateway.experiments import budget, queue, reuse, slices
from gateway.experiments.errors import UnusableItemError
from gateway.experiments.inputs import Input
from gateway.experiments.requests import candidate_request
from gateway.experiments.reuse import score_key
from gateway.experiments.slices import Slice
from gateway.models import ExperimentAnswer, ExperimentScore
from gateway.tables.experiment import REASON_CHARACTERS, AnswerFailure, AnswerState, ExperimentFailure
from gateway.worker.recording import may_ask

NOT_ANSWERED = "not_answered"
BASELINE_NOT_ANSWERED = "baseline_not_answered"
ANSWER_FAILED = "answer_failed"
UNUSABLE_ITEM = "unusable_item"
NO_TEXT = "no_text"


class Scoring:
    def __init__(self, shared: Slice, definitions: Sequence[Definition], answers: Sequence[ExperimentAnswer]) -> None:
        self._shared, self._definitions, self._answers = shared, definitions, answers
        self._item = answers[0].item
        self._input: Input | None = None
        self._baseline = next((one for one in answers if one.candidate == shared.baseline), None)

    async def run(self) -> None:
        try:
            self._input = await in_database_thread(self._shared.inputs.of, self._item)
        except ServiceUnavailableError:
            await self._put_back(DEFAULT_WAIT_SECONDS)
            return
        except UnusableItemError:
            self._input = None
        for answer in self._waiting:
            if not await self._score_all(answer):
                return
        await self._finish()

    async def fail(self, reason: str) -> None:
        for answer in self._waiting:
            for place in self._missing(answer):
                await self._store(_filled(ExperimentScore(answer=answer, evaluator=place), Evaluation(None, reason)))
        await self._finish()

    @property
    def _waiting(self) -> list[ExperimentAnswer]:
        return [answer for answer in self._answers if answer.state == AnswerState.SCORING]

    def _missing(self, answer: ExperimentAnswer) -> list[int]:
        there = {score.evaluator for score in answer.scores.all()}
        return [
            place
            for place, evaluator in enumerate(self._shared.evaluators)
            if place not in there and not (evaluator.is_pairwise and answer.candidate == self._shared.baseline)
        ]

    async def _finish(self) -> None:
        if await in_database_thread(queue.finish_scoring, self._answers):
            await self._shared.look()

    async def _score_all(self, answer: ExperimentAnswer) -> bool:
        for place in self._missing(answer):
            if not await self._score(answer, place):
                return False
        return True

    async def _score(self, answer: ExperimentAnswer, place: int) -> bool:
        definition = self._definitions[place]
        baseline = self._baseline if isinstance(definition, Pairwise) else None
        outcome = _without_asking(answer, baseline)
        score = ExperimentScore(answer=answer, evaluator=place)
        if outcome is not None or self._input is None:
            await self._store(_filled(score, outcome or Evaluation(None, UNUSABLE_ITEM)))
            return True
        score.key = score_key(answer, self._shared.evaluators[place].version_id, self._input.expected, baseline)
        if self._shared.experiment.reuse and await in_database_thread(_is_reused, score):
            await self._store(score)
            return True
        given = Answer(
            answer.answer or {},
            self._input.fields["messages"],
            self._input.expected,
            answer.finish_reason,
            answer.completion_tokens,
            await self._schema_for(definition, answer),
            baseline.answer if baseline is not None else None,
        )
        for wait in (*slices.RETRY_SECONDS, None):
            if (found := await self._ask(score, definition, given, is_last=wait is None)) is not None:
                return found
            await asyncio.sleep(wait or 0.0)
        return False

    async def _ask(
        self, score: ExperimentScore, definition: Definition, answer: Answer, *, is_last: bool
    ) -> bool | None:
        shared = self._shared
        if definition.asks_a_model and not may_ask(shared.runtime.spool):
            await self._put_back(DEFAULT_WAIT_SECONDS)
            return False
        model = model_of(definition) or shared.snapshot.settings.judge_model
        who = f"the evaluator {shared.evaluators[score.evaluator].title} ({model})"
        asked = Asked(shared.runtime, shared.snapshot, score.answer.request_id, shared.key_id)
        async with shared.purse.reserved(who, self._highest(definition, answer)) as reserved:
            evaluation = await evaluate(definition, asked, answer)
            cost = reserved if evaluation.cost_usd is None else evaluation.cost_usd
            error = evaluation.error
            comes_later = error is not None and (
                error.type == OUT_OF_BUDGET
                or is_limited(error)
                or (is_passing(error) and not is_too_long(error) and not is_last)
            )
            if not comes_later:
                _filled(score, evaluation, with_texts=shared.snapshot.settings.log_content)
                await self._store(score, reserved, cost)
                return True
            await in_database_thread(budget.settle, shared.experiment.pk, reserved=reserved, cost=cost)
        if error is not None and error.type == OUT_OF_BUDGET:
            await shared.fail(ExperimentFailure.BUDGET, error.message)
            return False
        if error is not None and is_limited(error):
            await self._put_back(seconds_of(error))
            return False
        return None

    def _highest(self, definition: Definition, answer: Answer) -> list[Callable[[], Decimal]]:
        snapshot = self._shared.snapshot
        if self._shared.experiment.max_cost_usd is None:
            return []
        questions = questions_of(definition, answer, snapshot)
        return [partial(known_highest_cost, snapshot, one.body, answers=one.answers) for one in questions]

    async def _schema_for(self, definition: Definition, answer: ExperimentAnswer) -> Mapping[str, Any] | None:
        if not isinstance(definition, JsonSchema) or definition.schema is not None:
            return None
        return await in_database_thread(self._schema, answer)

    def _schema(self, answer: ExperimentAnswer) -> Mapping[str, Any] | None:
        fields = self._input.fields if self._input is not None else {}
        candidate = self._shared.candidates[answer.candidate]
        try:
            return candidate_request(self._shared.experiment.project_id, self._item, fields, candidate).schema
        except ApplicationError:
            return None

    async def _store(self, score: ExperimentScore, reserved: Decimal = NOTHING, cost: Decimal = NOTHING) -> None:
        await in_database_thread(queue.store_score, score, self._shared.experiment.pk, reserved=reserved, cost=cost)

    async def _put_back(self, seconds: float) -> None:
        await in_database_thread(queue.put_scoring_back, self._answers)
        self._shared.pause(seconds)


def _without_asking(answer: ExperimentAnswer, baseline: ExperimentAnswer | None) -> Evaluation | None:
    both = [answer] if baseline is None else [answer, baseline]
    failures = [one.failure for one in both]
    if AnswerFailure.PASSING in failures:
        return Evaluation(None, ANSWER_FAILED)
    if AnswerFailure.UNUSABLE in failures:
        return Evaluation(None, UNUSABLE_ITEM)
    if AnswerFailure.REFUSED in failures:
        if all(failures) and baseline is not None:
            return Evaluation(0.5, NOT_ANSWERED)
        return Evaluation(0.0, NOT_ANSWERED) if answer.failure else Evaluation(1.0, BASELINE_NOT_ANSWERED)
    if any(one.answer is None for one in both):
        return Evaluation(None, NO_TEXT)
    return None


def _filled(score: ExperimentScore, evaluation: Evaluation, *, with_texts: bool = False) -> ExperimentScore:
    score.value = evaluation.score
    score.reason = storable(evaluation.reason)[:REASON_CHARACTERS]
    score.detail = storable(evaluation.detail) if with_texts else ""
    score.cost_usd, score.request_ids = evaluation.cost_usd, list(evaluation.request_ids)
    return score


def _is_reused(score: ExperimentScore) -> bool:
    kept = reuse.kept_score(score.key)
    if kept is None:
        return False
    for name in ("value", "reason", "detail", "cost_usd", "request_ids"):
        setattr(score, name, getattr(kept, name))
    score.reused = True
    return True
