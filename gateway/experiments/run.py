"""A worker takes an experiment for a slice of time and gives it back, so that other tasks get their turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from analytics.evaluators.definitions import Definition
from core.http.tracebacks import class_and_place
from core.processes.background_tasks import keep_running
from core.processes.database_threads import in_database_thread
from gateway.experiments import queue, reuse
from gateway.experiments.answering import Answering
from gateway.experiments.evaluators import definitions_of
from gateway.experiments.scoring import Scoring
from gateway.experiments.slices import NoRoomError, Slice
from gateway.models import Experiment, ExperimentAnswer
from gateway.pipeline.internal_client import settled
from gateway.runtime.runtime import Runtime
from gateway.tables.experiment import ExperimentFailure
from gateway.worker.current import on_loop
from gateway.worker.recording import background_turn, may_ask

logger = logging.getLogger("gateway.experiments")

PARALLEL_WORKERS = 4
_WATCH_SECONDS = 1.0
# Requests that were hung up on get this long to write their records.
_SETTLE_SECONDS = 3.0
# An answer that another experiment is making is looked for again after this time.
_ELSEWHERE_SECONDS = 5.0
_FULL_DISK_SECONDS = 10.0


def run_due_experiment() -> bool:
    """Runs a slice of the experiment that has waited longest. Returns whether another is due."""
    with background_turn() as may_begin:
        experiment = queue.claim_experiment() if may_begin else None
        if experiment is None:
            return False
        on_loop(partial(_run_slice, experiment=experiment))
        return queue.is_anything_due()


async def _run_slice(runtime: Runtime, experiment: Experiment) -> None:
    shared = Slice(runtime, await runtime.snapshots.project(experiment.project_id), experiment)
    try:
        await _Work(shared).run()
    finally:
        await in_database_thread(queue.release_experiment, experiment.pk, shared.resume_at)


class _Work:
    def __init__(self, shared: Slice) -> None:
        self._shared = shared
        self._id = shared.experiment.pk

    async def run(self) -> None:
        shared = self._shared
        if shared.experiment.reuse:
            await in_database_thread(reuse.reuse_answers, shared.experiment)
        definitions = await in_database_thread(definitions_of, shared.evaluators)
        workers = [asyncio.create_task(self._work(definitions)) for _ in range(PARALLEL_WORKERS)]
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
        if shared.no_room:
            await shared.fail(ExperimentFailure.BUDGET, shared.no_room)
        elif not shared.is_over and await in_database_thread(queue.is_anything_left, self._id):
            shared.pause(_ELSEWHERE_SECONDS)

    async def _watch(self, workers: list[asyncio.Task[None]]) -> None:
        while await in_database_thread(queue.keep_claim, self._id):
            await asyncio.wait(workers, timeout=_WATCH_SECONDS)
        for worker in workers:
            worker.cancel()

    async def _work(self, definitions: Sequence[Definition]) -> None:
        shared = self._shared
        while not shared.is_over:
            if not may_ask(shared.runtime.spool):
                shared.pause(_FULL_DISK_SECONDS)
                return
            try:
                if answers := await self._to_score():
                    await self._score(Scoring(shared, definitions, answers))
                elif (answer := await in_database_thread(queue.claim_answer, self._id)) is not None:
                    await self._answer(answer)
                else:
                    return
            except NoRoomError as problem:
                shared.no_room = str(problem)

    async def _to_score(self) -> list[ExperimentAnswer]:
        if not self._shared.evaluators:
            return []
        return await in_database_thread(queue.claim_scoring, self._id)

    async def _score(self, scoring: Scoring) -> None:
        try:
            await scoring.run()
        except NoRoomError:
            raise
        except Exception as error:
            logger.error("scoring.failed experiment_id=%s error=%s", self._id, class_and_place(error))
            await scoring.fail("internal_error")

    async def _answer(self, answer: ExperimentAnswer) -> None:
        answering = Answering(self._shared, answer)
        try:
            await answering.run()
        except NoRoomError:
            raise
        except Exception as error:
            # One item with a defect must not keep all others from their answers.
            logger.error(
                "answer.failed experiment_id=%s answer_id=%s error=%s", self._id, answer.pk, class_and_place(error)
            )
            await answering.fail("internal_error", "The answer failed; the failure is logged.")
