"""Runs trials: each answer is a request of the gateway, which the log lists with the source `trial`.

A worker takes a trial for a slice of time and gives it back, so that trials share the worker with its other tasks.
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
from gateway.models import Trial, TrialAnswer
from gateway.pipeline.internal_client import Caller, InternalAnswer, ask, settled
from gateway.playground.results import Result, message_of
from gateway.playground.services import ACTOR, PlaygroundRun, judged, with_stored_scores
from gateway.protocol.headers import PROMPT_VERSION, WARNING
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.tables.trial import TrialState
from gateway.trials import queue
from gateway.trials.candidates import candidates_of
from gateway.trials.requests import CandidateRequest, candidate_request
from gateway.trials.services import end_trial
from gateway.worker.current import on_loop

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("gateway.trials")

SOURCE = "trial"
TRIAL = "trial_id"
"""The attribute of a record that names the trial whose answer it is."""
INPUT = "trial_input_request_id"
"""The attribute of a record that names the past request whose input was tried."""

SLICE_SECONDS = 15.0
PARALLEL_ANSWERS = 4
_WATCH_SECONDS = 1.0
# Requests that were hung up on get this long to write their records.
_SETTLE_SECONDS = 3.0
_MAX_TRIES = 20
_DEFAULT_WAIT_SECONDS, _MAX_WAIT_SECONDS = 10.0, 60.0
_OUT_OF_BUDGET = "monthly_budget_exceeded"
_RATE_LIMITED = "rate_limit_error"

# A process has one runtime for trials at a time: its spool and its connections are its own.
_running = threading.Lock()


def run_due_trial() -> bool:
    """Runs a slice of the trial that has waited longest. Returns whether a trial is due then."""
    if not _running.acquire(blocking=False):
        return False
    try:
        trial = queue.claim_trial()
        if trial is None:
            return False
        on_loop(partial(_run_slice, trial=trial))
        return queue.is_anything_due()
    finally:
        _running.release()


async def _run_slice(runtime: Runtime, trial: Trial) -> None:
    run = _TrialRun(runtime, await runtime.snapshots.project(trial.project_id), trial)
    try:
        await run.work()
    finally:
        await in_database_thread(queue.release_trial, trial.pk, run.resume_at)


class _TrialRun:
    """A slice of a trial. `resume_at` is the time to go on at; None for at once."""

    def __init__(self, runtime: Runtime, snapshot: ProjectSnapshot, trial: Trial) -> None:
        self._runtime, self._snapshot, self._trial = runtime, snapshot, trial
        self._candidates = candidates_of(trial.candidates)
        self._until = time.monotonic() + SLICE_SECONDS
        self._stopped = False
        self.resume_at: datetime | None = None

    async def work(self) -> None:
        workers = [asyncio.create_task(self._answer_all()) for _ in range(PARALLEL_ANSWERS)]
        watch = keep_running("gateway.trials.claim", partial(self._watch, workers))
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
        """Keeps the claim, and ends all work once the trial is cancelled or deleted."""
        while await in_database_thread(queue.keep_claim, self._trial.pk):
            await asyncio.wait(workers, timeout=_WATCH_SECONDS)
        for worker in workers:
            worker.cancel()

    async def _answer_all(self) -> None:
        while not self._stopped and time.monotonic() < self._until:
            answer = await in_database_thread(queue.claim_answer, self._trial.pk)
            if answer is None:
                return
            try:
                await self._answer(answer)
            except Exception as error:
                # One input with a defect must not keep all others from their answers.
                logger.error(
                    "answer.failed trial_id=%s answer_id=%s error=%s", self._trial.pk, answer.pk, class_and_place(error)
                )
                answer.error_code, answer.error_message = "internal_error", "The answer failed; the failure is logged."
                await in_database_thread(queue.store_answer, answer)

    async def _answer(self, answer: TrialAnswer) -> None:
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

    async def _goes_on(self, answer: TrialAnswer, given: InternalAnswer) -> bool:
        """Returns whether a failure is the outcome of one answer, and neither temporary nor one of the whole trial."""
        error = given.error
        if error is None:
            return True
        if error.code == _OUT_OF_BUDGET:
            self._stopped = True
            await in_database_thread(end_trial, self._trial.pk, TrialState.FAILED, error.message)
            return False
        if error.type == _RATE_LIMITED and answer.tries < _MAX_TRIES:
            await self._wait(answer, _seconds(error.headers.get("retry-after", "")))
            return False
        return True

    async def _wait(self, answer: TrialAnswer, seconds: float) -> None:
        """Puts an answer back and ends the slice; the trial goes on after the time."""
        self._stopped = True
        self.resume_at = timezone.now() + timedelta(seconds=min(max(seconds, 1.0), _MAX_WAIT_SECONDS))
        await in_database_thread(queue.put_back, answer)

    async def _store(self, answer: TrialAnswer, request: CandidateRequest, given: InternalAnswer) -> None:
        run = PlaygroundRun(
            project_id=self._trial.project_id,
            actor=self._trial.created_by,
            session_id="",
            messages=request.messages,
            bodies={},
            evaluate=self._trial.judge,
            seconds=settings.PLAYGROUND_SECONDS,
        )
        result = await judged(self._runtime, self._snapshot, run, "", given)
        (result,) = await with_stored_scores(run, self._snapshot, [result])
        fill(answer, result, with_texts=self._snapshot.settings.log_content)
        await in_database_thread(queue.store_answer, answer)

    def _request_of(self, answer: TrialAnswer) -> CandidateRequest:
        past = answer.input
        payload = get_payload_at(self._trial.project_id, past.requested_at, past.request_id)
        stored = payload.request if payload is not None else ""
        return candidate_request(self._trial.project_id, past, stored, self._candidates[answer.candidate])

    def _caller(self, answer: TrialAnswer, request: CandidateRequest) -> Caller:
        actor = self._trial.created_by
        attributes = {ACTOR: actor, TRIAL: str(self._trial.pk), INPUT: str(answer.input.request_id)}
        return Caller(SOURCE, key_id_of(actor), attributes=attributes, version=request.version)


def fill(answer: TrialAnswer, result: Result, *, with_texts: bool) -> None:
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


def _fill_grades(answer: TrialAnswer, result: Result, *, with_texts: bool) -> None:
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
