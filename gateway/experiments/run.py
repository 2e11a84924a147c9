"""Runs experiments: each answer is a request of the gateway, which the log lists with the source `experiment`.

A worker takes an experiment for a slice of time and gives it back, so that it shares the worker with other tasks.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.utils import timezone

from analytics.queries.requests import get_payload_at
from core.api.authentication import key_id_of
from core.errors import ApplicationError, ServiceUnavailableError
from core.http.tracebacks import class_and_place
from core.processes.background_tasks import keep_running
from core.processes.database_threads import in_database_thread
from core.wire.storable import storable
from gateway.experiments import queue
from gateway.experiments.candidates import candidates_of
from gateway.experiments.requests import CandidateRequest, candidate_request
from gateway.experiments.services import end_experiment
from gateway.models import Experiment, ExperimentAnswer
from gateway.pipeline.internal_client import Caller, InternalAnswer, ask, settled
from gateway.playground.results import Result, message_of
from gateway.playground.services import ACTOR, PlaygroundRun, judged, with_stored_scores
from gateway.protocol.headers import PROMPT_VERSION, WARNING
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.tables.experiment import ExperimentState
from gateway.worker.current import on_loop

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("gateway.experiments")

SOURCE = "experiment"
EXPERIMENT = "experiment_id"
"""The attribute of a record that names the experiment whose answer it is."""
ITEM = "experiment_item_request_id"
"""The attribute of a record that names the past request whose item was tried."""

SLICE_SECONDS = 15.0
PARALLEL_ANSWERS = 4
_WATCH_SECONDS = 1.0
# Requests that were hung up on get this long to write their records.
_SETTLE_SECONDS = 3.0
_MAX_TRIES = 20
_DEFAULT_WAIT_SECONDS, _MAX_WAIT_SECONDS = 10.0, 60.0
_OUT_OF_BUDGET = "monthly_budget_exceeded"
_RATE_LIMITED = "rate_limit_error"

# A process has one runtime for experiments at a time: its spool and its connections are its own.
_running = threading.Lock()


def run_due_experiment() -> bool:
    """Runs a slice of the experiment that has waited longest. Returns whether an experiment is due then."""
    if not _running.acquire(blocking=False):
        return False
    try:
        experiment = queue.claim_experiment()
        if experiment is None:
            return False
        on_loop(partial(_run_slice, experiment=experiment))
        return queue.is_anything_due()
    finally:
        _running.release()


async def _run_slice(runtime: Runtime, experiment: Experiment) -> None:
    run = _ExperimentRun(runtime, await runtime.snapshots.project(experiment.project_id), experiment)
    try:
        await run.work()
    finally:
        await in_database_thread(queue.release_experiment, experiment.pk, run.resume_at)


class _ExperimentRun:
    """A slice of an experiment. `resume_at` is the time to go on at; None for at once."""

    def __init__(self, runtime: Runtime, snapshot: ProjectSnapshot, experiment: Experiment) -> None:
        self._runtime, self._snapshot, self._experiment = runtime, snapshot, experiment
        self._candidates = candidates_of(experiment.candidates)
        self._until = time.monotonic() + SLICE_SECONDS
        self._stopped = False
        self.resume_at: datetime | None = None

    async def work(self) -> None:
        workers = [asyncio.create_task(self._answer_all()) for _ in range(PARALLEL_ANSWERS)]
        watch = keep_running("gateway.experiments.claim", partial(self._watch, workers))
        try:
            outcomes = await asyncio.gather(*workers, return_exceptions=True)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            await settled(_SETTLE_SECONDS)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome

    async def _watch(self, workers: list[asyncio.Task[None]]) -> None:
        """Keeps the claim, and ends all work once the experiment is cancelled or deleted."""
        while await in_database_thread(queue.keep_claim, self._experiment.pk):
            await asyncio.wait(workers, timeout=_WATCH_SECONDS)
        for worker in workers:
            worker.cancel()

    async def _answer_all(self) -> None:
        while not self._stopped and time.monotonic() < self._until:
            answer = await in_database_thread(queue.claim_answer, self._experiment.pk)
            if answer is None:
                return
            try:
                await self._answer(answer)
            except Exception as error:
                # One item with a defect must not keep all others from their answers.
                logger.error(
                    "answer.failed experiment_id=%s answer_id=%s error=%s",
                    self._experiment.pk,
                    answer.pk,
                    class_and_place(error),
                )
                answer.error_code, answer.error_message = "internal_error", "The answer failed; the failure is logged."
                await in_database_thread(queue.store_answer, answer)

    async def _answer(self, answer: ExperimentAnswer) -> None:
        try:
            request = await in_database_thread(self._request_of, answer)
        except ServiceUnavailableError:
            await self._wait(answer, _DEFAULT_WAIT_SECONDS)
            return
        except ApplicationError as error:
            answer.error_code, answer.error_message = error.code, error.message
            await in_database_thread(queue.store_answer, answer)
            return
        given = await ask(
            self._runtime,
            self._snapshot,
            self._caller(answer, request),
            request.body,
            seconds=settings.PLAYGROUND_SECONDS,
        )
        if given.error is not None and not await self._goes_on(answer, given):
            return
        await self._store(answer, request, given)

    async def _goes_on(self, answer: ExperimentAnswer, given: InternalAnswer) -> bool:
        """Returns whether a failure is the outcome of one answer, and neither temporary nor the whole experiment's."""
        error = given.error
        if error is None:
            return True
        if error.code == _OUT_OF_BUDGET:
            self._stopped = True
            await in_database_thread(end_experiment, self._experiment.pk, ExperimentState.FAILED, error.message)
            return False
        if error.type == _RATE_LIMITED and answer.tries < _MAX_TRIES:
            await self._wait(answer, _seconds(error.headers.get("retry-after", "")))
            return False
        return True

    async def _wait(self, answer: ExperimentAnswer, seconds: float) -> None:
        """Puts an answer back and ends the slice; the experiment goes on after the time."""
        self._stopped = True
        self.resume_at = timezone.now() + timedelta(seconds=min(max(seconds, 1.0), _MAX_WAIT_SECONDS))
        await in_database_thread(queue.put_back, answer)

    async def _store(self, answer: ExperimentAnswer, request: CandidateRequest, given: InternalAnswer) -> None:
        run = PlaygroundRun(
            project_id=self._experiment.project_id,
            actor=self._experiment.created_by,
            session_id="",
            messages=request.messages,
            bodies={},
            evaluate=self._experiment.judge,
            seconds=settings.PLAYGROUND_SECONDS,
        )
        result = await judged(self._runtime, self._snapshot, run, "", given)
        (result,) = await with_stored_scores(run, self._snapshot, [result])
        fill(answer, result, with_texts=self._snapshot.settings.log_content)
        await in_database_thread(queue.store_answer, answer)

    def _request_of(self, answer: ExperimentAnswer) -> CandidateRequest:
        past = answer.item
        payload = get_payload_at(self._experiment.project_id, past.requested_at, past.request_id)
        stored = payload.request if payload is not None else ""
        return candidate_request(self._experiment.project_id, past, stored, self._candidates[answer.candidate])

    def _caller(self, answer: ExperimentAnswer, request: CandidateRequest) -> Caller:
        actor = self._experiment.created_by
        attributes = {ACTOR: actor, EXPERIMENT: str(self._experiment.pk), ITEM: str(answer.item.request_id)}
        return Caller(SOURCE, key_id_of(actor), attributes=attributes, version=request.version)


def fill(answer: ExperimentAnswer, result: Result, *, with_texts: bool) -> None:
    """Sets the fields of an answer by its result. In a project that stores no texts it has none."""
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


def _seconds(retry_after: str) -> float:
    try:
        return float(retry_after)
    except ValueError:
        return _DEFAULT_WAIT_SECONDS
