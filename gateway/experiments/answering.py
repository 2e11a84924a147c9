"""A candidate's answer is a request of the gateway; the log lists it with the source `experiment` or `shadow`."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from functools import partial

from django.conf import settings

from analytics.request_log import quoting
from core.errors import ApplicationError, ServiceUnavailableError
from core.ledger import NOTHING
from core.processes.database_threads import in_database_thread
from core.wire.storable import storable
from gateway.evaluations.failures import DEFAULT_WAIT_SECONDS, OUT_OF_BUDGET, is_limited, is_passing, seconds_of
from gateway.evaluations.highest_cost import known_highest_cost
from gateway.experiments import budget, queue, reuse, slices
from gateway.experiments.errors import UnusableItemError
from gateway.experiments.requests import CandidateRequest, candidate_request
from gateway.experiments.slices import Slice
from gateway.judging.form import form_of
from gateway.judging.rubric import judge_request
from gateway.models import ExperimentAnswer
from gateway.pipeline.internal_client import Caller, InternalAnswer, Reported, ask
from gateway.playground.results import Result, message_of
from gateway.playground.services import ACTOR, PlaygroundRun, judged, with_stored_scores
from gateway.protocol.headers import PROMPT_VERSION, WARNING
from gateway.tables.experiment import LABELS, AnswerFailure, ExperimentFailure
from gateway.worker.recording import may_ask

EXPERIMENT = "experiment_id"
"""The attribute of a record that names the experiment whose answer it is."""

_MAX_TRIES = 20


class Answering:
    def __init__(self, shared: Slice, answer: ExperimentAnswer) -> None:
        self._shared, self._answer = shared, answer
        self._experiment = shared.experiment

    async def run(self) -> None:
        answer = self._answer
        try:
            if await in_database_thread(self._is_reused):
                await self._store(NOTHING, NOTHING)
                return
            request = await in_database_thread(self._request)
        except ServiceUnavailableError:
            await in_database_thread(queue.put_back, answer)
            self._shared.pause(DEFAULT_WAIT_SECONDS)
            return
        except ApplicationError as error:
            of_item = isinstance(error, UnusableItemError) and not error.of_candidate
            answer.error_code, answer.error_message = error.code, error.message
            answer.failure = AnswerFailure.UNUSABLE if of_item else AnswerFailure.REFUSED
            await self._store(NOTHING, NOTHING)
            return
        for wait in (*slices.RETRY_SECONDS, None):
            if await self._ask(request, is_last=wait is None):
                return
            await asyncio.sleep(wait or 0.0)

    async def fail(self, code: str, message: str) -> None:
        self._answer.error_code, self._answer.error_message = code, message
        self._answer.failure = AnswerFailure.PASSING
        await self._store(NOTHING, NOTHING)

    def _is_reused(self) -> bool:
        answer, experiment = self._answer, self._experiment
        kept = reuse.kept_answers([answer.key], graded=experiment.judge) if experiment.reuse and answer.key else {}
        if answer.key not in kept:
            return False
        reuse.copy_answer(kept[answer.key], answer)
        return True

    def _request(self) -> CandidateRequest:
        item = self._answer.item
        if self._experiment.is_shadow and not self._shared.snapshot.settings.log_content:
            raise UnusableItemError("The project stores no texts any more.")
        fields = self._shared.inputs.of(item).fields
        candidate = self._shared.candidates[self._answer.candidate]
        if candidate.application:  # It was a copy of an answer that was deleted since.
            raise UnusableItemError("The application's answer was deleted.", of_candidate=True)
        return candidate_request(self._experiment.project_id, item, fields, candidate)

    async def _ask(self, request: CandidateRequest, *, is_last: bool) -> bool:
        shared = self._shared
        if not may_ask(shared.runtime.spool):
            await in_database_thread(queue.put_back, self._answer)
            shared.pause(DEFAULT_WAIT_SECONDS)
            return True
        highest = partial(known_highest_cost, shared.snapshot, request.body, request.version)
        who = f"the candidate {LABELS[self._answer.candidate]}"
        async with shared.purse.reserved(who, [highest]) as reserved:
            caller, seconds = self._caller(request), settings.PLAYGROUND_SECONDS
            given = await ask(shared.runtime, shared.snapshot, caller, request.body, seconds=seconds)
            cost, error = reserved if given.cost_usd is None else given.cost_usd, given.error
            if error is None and not self._experiment.judge:
                fill(self._answer, Result("", given), with_texts=shared.snapshot.settings.log_content)
                await self._store(reserved, cost)
                return True
            await in_database_thread(budget.settle, self._experiment.pk, reserved=reserved, cost=cost)
        if error is None:
            await self._store_graded(request, given)
            return True
        return await self._is_failed(given, error, is_last=is_last)

    async def _is_failed(self, given: InternalAnswer, error: Reported, *, is_last: bool) -> bool:
        shared, answer = self._shared, self._answer
        if error.type == OUT_OF_BUDGET:
            await shared.fail(ExperimentFailure.BUDGET, error.message)
            return True
        if is_limited(error) and answer.tries < _MAX_TRIES:
            await in_database_thread(queue.put_back, answer)
            shared.pause(seconds_of(error))
            return True
        if is_passing(error) and not is_last:
            return False
        fill(answer, Result("", given), with_texts=shared.snapshot.settings.log_content)
        answer.failure = AnswerFailure.PASSING if is_passing(error) else AnswerFailure.REFUSED
        await self._store(NOTHING, NOTHING)
        return True

    async def _store_graded(self, request: CandidateRequest, given: InternalAnswer) -> None:
        shared, experiment = self._shared, self._experiment
        run = PlaygroundRun(
            project_id=experiment.project_id,
            actor=experiment.created_by,
            session_id="",
            messages=request.messages,
            bodies={},
            evaluate=True,
            seconds=settings.PLAYGROUND_SECONDS,
        )
        model, message = shared.snapshot.settings.judge_model, message_of(given)
        is_asked = bool(experiment.max_cost_usd is not None and model and message)
        form = form_of(shared.snapshot, model)
        body = judge_request(model, request.messages, message, form=form) if is_asked and message else b""
        highest = [partial(known_highest_cost, shared.snapshot, body)] if body else []
        async with shared.purse.reserved(f"judge_model ({model})", highest) as reserved:
            result = await judged(shared.runtime, shared.snapshot, run, "", given)
            (result,) = await with_stored_scores(run, shared.snapshot, [result])
            fill(self._answer, result, with_texts=shared.snapshot.settings.log_content)
            asked = result.judgement.answer if result.judgement is not None else None
            cost = NOTHING if asked is None else asked.cost_usd
            await self._store(reserved, reserved if cost is None else cost)

    async def _store(self, reserved: Decimal, cost: Decimal) -> None:
        answer, experiment = self._answer, self._experiment
        await in_database_thread(
            queue.store_answer, answer, is_scored=bool(experiment.evaluators), reserved=reserved, cost=cost
        )
        # A shadow outlives hours without a provider: its pairs without a score keep it from passing.
        if answer.failure == AnswerFailure.PASSING and not experiment.is_shadow:
            await self._require_provider()

    async def _require_provider(self) -> None:
        candidate = self._answer.candidate
        if await in_database_thread(queue.fails_too_often, self._experiment.pk, candidate):
            problem = (
                f"More than a fifth of the answers of {LABELS[candidate]} failed, the last one with"
                f" {self._answer.error_code}: {self._answer.error_message}"
            )
            await self._shared.fail(ExperimentFailure.PROVIDER, problem)

    def _caller(self, request: CandidateRequest) -> Caller:
        item, experiment = self._answer.item, self._experiment
        attributes = {ACTOR: experiment.created_by, EXPERIMENT: str(experiment.pk)}
        if item.request_id is not None:
            attributes[quoting.ITEM_REQUEST] = str(item.request_id)
        if item.dataset_item_id is not None:
            attributes[quoting.ITEM] = str(item.dataset_item_id)
        source = quoting.SHADOW if experiment.is_shadow else quoting.EXPERIMENT
        return Caller(source, self._shared.key_id, attributes=attributes, version=request.version)


def fill(answer: ExperimentAnswer, result: Result, *, with_texts: bool) -> None:
    given = result.answer
    record, headers = given.record, given.headers
    answer.request_id = given.request_id
    answer.latency_ms = round(result.latency_ms)
    answer.warning = headers.get(WARNING.decode(), "")
    version = headers.get(PROMPT_VERSION.decode(), "")
    answer.prompt_version = int(version) if version.isdigit() else 0
    if record is not None:
        answer.provider, answer.model, answer.finish_reason = record.provider, record.model, record.finish_reason
        answer.prompt_tokens, answer.completion_tokens = record.prompt_tokens, record.completion_tokens
    answer.cost_usd = Decimal(record.cost_usd or 0) if record is not None and record.cost_known else None
    if given.error is not None:
        answer.error_code, answer.error_message = given.error.code, storable(given.error.message)
        return
    answer.answer = storable(message_of(given)) if with_texts else None
    _fill_grades(answer, result, with_texts=with_texts)


def _fill_grades(answer: ExperimentAnswer, result: Result, *, with_texts: bool) -> None:
    judgement = result.judgement
    if judgement is None:
        return
    if judgement.error is not None:
        answer.judge_error = storable(judgement.error.message)
    if judgement.grades:
        grades = judgement.grades
        answer.score = sum(grade.score for grade in grades.values()) / len(grades)
        reasons = {name: grade.reason if with_texts else "" for name, grade in grades.items()}
        answer.grades = storable(
            {name: {"score": grade.score, "reason": reasons[name]} for name, grade in grades.items()}
        )
