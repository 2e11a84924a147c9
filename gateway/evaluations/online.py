"""Judges the answers that online evaluations have due, in one queue for all, on Celery workers.

A judge gets only messages and answer, not versions, arms or headers. Its cost is reserved before it is asked. No text
is sent to a model if the project keeps no texts, or a guardrail masked something.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from functools import partial
from uuid import UUID

from django.utils import timezone

from analytics.models import EvaluationTask
from analytics.models.online_evaluations import SkipReason, TaskState
from analytics.online_evaluations import money, queue
from analytics.online_evaluations.money import Room
from analytics.online_evaluations.queue import Batch, End
from core.http.tracebacks import class_and_place
from core.ledger import NOTHING
from core.processes.background_tasks import keep_running
from core.processes.database_threads import in_database_thread
from core.wire.storable import storable
from gateway.evaluations.behind_clients import behind_clients
from gateway.evaluations.evaluate import Asked, evaluate, questions_of
from gateway.evaluations.failures import OUT_OF_BUDGET, is_limited, is_passing, is_too_long, seconds_of
from gateway.evaluations.highest_cost import called_once, highest_cost
from gateway.evaluations.online_reading import read_batch
from gateway.evaluations.rules import Answer, Evaluation
from gateway.pipeline.internal_client import settled
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.worker.current import on_loop
from gateway.worker.recording import background_turn, may_ask

logger = logging.getLogger("gateway.evaluations")

BATCH = 64
PARALLEL = 16
SLICE_SECONDS = 15.0
UNKNOWN_COST = "unknown_cost"
"""The reason of a task whose judge has no known price or no longest answer: the budget could not be kept."""
TOO_MANY_TOKENS = "too_many_tokens"
"""The reason of a task whose judge may need more tokens than background requests may use in a whole minute."""

_WATCH_SECONDS = 5.0
_SETTLE_SECONDS = 3.0
_MAX_WAIT_SECONDS = 60.0
_RETRY_SECONDS = 20.0
_STORE_AWAY_SECONDS = 10.0
_ROOM_SECONDS = 5.0
_FULL_DISK_SECONDS = 10.0


def judge_due() -> bool:
    """Judges for a slice of time. Returns whether more is due."""
    with background_turn() as may_begin:
        if not may_begin:
            return False
        queue.tidy(timezone.now())
        batch = queue.claim_batch(timezone.now(), BATCH)
        if batch is None:
            return False
        on_loop(partial(_slice, first=batch))
        return queue.is_anything_due(timezone.now())


async def _slice(runtime: Runtime, first: Batch) -> None:
    until = time.monotonic() + SLICE_SECONDS
    batch: Batch | None = first
    try:
        while batch is not None:
            snapshot = await runtime.snapshots.project(batch.project_id)
            await _Judging(runtime, snapshot, batch).run()
            if time.monotonic() >= until:
                return
            batch = await in_database_thread(queue.claim_batch, timezone.now(), BATCH)
    finally:
        await settled(_SETTLE_SECONDS)


class _Judging:
    def __init__(self, runtime: Runtime, snapshot: ProjectSnapshot, batch: Batch) -> None:
        # Where costs are bounded, a request is one call of a provider; and clients come first.
        self._runtime, self._snapshot, self._batch = runtime, behind_clients(called_once(snapshot)), batch
        self._ends: list[End] = []
        self._storing = asyncio.Lock()
        self._pause: float | None = None
        # The tasks with money reserved, by evaluation; the event is set when one of them is settled.
        self._reserved: Counter[UUID] = Counter()
        self._settled = asyncio.Event()
        # The evaluations that have no room because of what other workers ask for.
        self._no_room: set[UUID] = set()

    async def run(self) -> None:
        over = asyncio.Event()
        watch = keep_running("gateway.evaluations.claim", partial(self._keep_claim, over))
        try:
            found = await in_database_thread(read_batch, self._batch, keeps_texts=self._snapshot.settings.log_content)
            places = asyncio.Semaphore(PARALLEL)
            await asyncio.gather(*(self._one(places, task, found.get(task.pk)) for task in self._batch.tasks))
            await self._store()
        finally:
            over.set()
            await watch
        if self._pause is not None:
            until = timezone.now() + timedelta(seconds=self._pause)
            await in_database_thread(queue.postpone, self._batch.project_id, until)
        for evaluation_id in self._no_room:
            # Else all that is due would be taken and put back again and again.
            until = timezone.now() + timedelta(seconds=_ROOM_SECONDS)
            await in_database_thread(queue.postpone_evaluation, evaluation_id, until)

    async def _keep_claim(self, over: asyncio.Event) -> None:
        while not over.is_set() and await in_database_thread(queue.keep_claim, self._batch.claim):
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), _WATCH_SECONDS)

    async def _one(self, places: asyncio.Semaphore, task: EvaluationTask, read: Answer | End | None) -> None:
        async with places:
            try:
                end = await self._end_of(task, read)
            except Exception as error:
                # One answer with a defect must not keep all others from their scores.
                logger.error("evaluation.failed task_id=%s error=%s", task.pk, class_and_place(error))
                end = End(task, TaskState.FAILED, "internal_error", cost=task.reserved_usd)
            try:
                if end is not None:
                    self._ends.append(end)
                    await self._store()
            finally:
                self._has_settled(task)

    async def _store(self) -> None:
        async with self._storing:
            ends, self._ends = self._ends, []
            if ends:
                await in_database_thread(queue.finish, ends, timezone.now())

    async def _end_of(self, task: EvaluationTask, read: Answer | End | None) -> End | None:
        """Returns how the task ends; None for one that was put back."""
        if read is None:
            return await self._put_back(task, _STORE_AWAY_SECONDS)
        if isinstance(read, End):
            return read
        if self._pause is not None:
            return await self._put_back(task, self._pause)
        definition = queue.version_of(task).definition
        if not definition.asks_a_model:
            return await self._asked(task, read)
        if not may_ask(self._runtime.spool):
            self._pause = _FULL_DISK_SECONDS
            return await self._put_back(task, self._pause)
        questions = questions_of(definition, read, self._snapshot)
        bounds = [highest_cost(self._snapshot, one.body, answers=one.answers) for one in questions]
        known = [bound for bound in bounds if bound is not None]
        if len(known) < len(bounds):
            return End(task, TaskState.FAILED, UNKNOWN_COST)
        room = await self._room(task, sum(known, NOTHING))
        if room is Room.NONE:
            return End(task, TaskState.SKIPPED, SkipReason.BUDGET)
        if room is Room.LATER:
            self._no_room.add(task.evaluation_id)
            return await self._put_back(task, _ROOM_SECONDS)
        return await self._asked(task, read)

    async def _room(self, task: EvaluationTask, amount: Decimal) -> Room:
        """Reserves money, waiting first for this worker's open requests if they may leave some."""
        while task.evaluation_id not in self._no_room:
            settled = self._settled
            room = await in_database_thread(self._reserve, task, amount)
            if room is Room.RESERVED:
                self._reserved[task.evaluation_id] += 1
            if room is not Room.LATER:
                return room
            if not settled.is_set():
                if not self._reserved[task.evaluation_id]:
                    return Room.LATER
                await settled.wait()
        return Room.LATER

    def _has_settled(self, task: EvaluationTask) -> None:
        if task.reserved_in_id is not None:
            self._reserved[task.evaluation_id] -= 1
            self._settled.set()
            self._settled = asyncio.Event()

    def _reserve(self, task: EvaluationTask, amount: Decimal) -> Room:
        room = money.reserve(task, amount, timezone.now())
        if room is Room.RESERVED:
            task.refresh_from_db(fields=["reserved_usd", "reserved_in"])
        return room

    async def _asked(self, task: EvaluationTask, answer: Answer) -> End | None:
        asked = Asked(self._runtime, self._snapshot, str(task.request_id))
        evaluation = await evaluate(queue.version_of(task).definition, asked, answer)
        cost = task.reserved_usd if evaluation.cost_usd is None else evaluation.cost_usd
        error = evaluation.error
        if error is None:
            return _end(task, evaluation, cost)
        if error.type == OUT_OF_BUDGET:
            return End(task, TaskState.SKIPPED, SkipReason.BUDGET, cost=cost)
        if is_too_long(error):
            return End(task, TaskState.FAILED, TOO_MANY_TOKENS, cost=cost)
        if is_limited(error):
            # Clients come first: the project's judging waits until there is room in its limits.
            self._pause = min(max(seconds_of(error), 1.0), _MAX_WAIT_SECONDS)
            return await self._put_back(task, self._pause, cost=cost)
        if is_passing(error) and task.tries < queue.MAX_TRIES:
            return await self._put_back(task, _RETRY_SECONDS * task.tries, cost=cost, counts=True)
        return _end(task, evaluation, cost)

    async def _put_back(
        self, task: EvaluationTask, seconds: float, *, cost: Decimal = NOTHING, counts: bool = False
    ) -> End | None:
        until = timezone.now() + timedelta(seconds=seconds)
        await in_database_thread(queue.put_back, task, until=until, cost=cost, counts=counts)
        return None


def _end(task: EvaluationTask, evaluation: Evaluation, cost: Decimal) -> End:
    if evaluation.score is None:
        return End(task, TaskState.FAILED, evaluation.reason, judge_model=evaluation.judge_model, cost=cost)
    return End(
        task,
        TaskState.DONE,
        score=evaluation.score,
        text=storable(evaluation.detail or evaluation.reason),
        judge_model=evaluation.judge_model,
        cost=cost,
    )
