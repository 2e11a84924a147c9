from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from decimal import Decimal

from django.utils import timezone

from core.api.authentication import key_id_of
from core.ledger import NOTHING
from core.processes.database_threads import in_database_thread
from gateway.evaluations.behind_clients import behind_clients
from gateway.evaluations.highest_cost import UnknownCostError, called_once
from gateway.experiments import budget, report
from gateway.experiments.candidates import candidates_of
from gateway.experiments.evaluators import evaluators_of
from gateway.experiments.inputs import Inputs
from gateway.experiments.services import end_experiment
from gateway.models import Experiment
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.tables.experiment import LABELS, ExperimentFailure, ExperimentState

SLICE_SECONDS = 15.0
RETRY_SECONDS = (1.0, 4.0, 15.0)
"""The waits before a request is made once more that failed for a reason that will pass."""
_MAX_WAIT_SECONDS = 60.0


class NoRoomError(Exception):
    """The experiment's largest cost leaves no room for a request. The message is for people."""


class Slice:
    """`resume_at` is None to continue at once. `no_room` says why there is no money left for a request; it ends the
    experiment once the requests under way are booked."""

    def __init__(self, runtime: Runtime, snapshot: ProjectSnapshot, experiment: Experiment) -> None:
        self.runtime, self.experiment = runtime, experiment
        self.candidates = candidates_of(experiment.candidates)
        self.evaluators = evaluators_of(experiment.evaluators)
        self.baseline = LABELS.index(experiment.baseline) if experiment.baseline else None
        self.inputs = Inputs(experiment)
        self.purse = Purse(experiment)
        self.key_id = key_id_of(experiment.created_by)
        # Where costs are bounded, a request is one call of a provider; and clients come first.
        bounded = snapshot if experiment.max_cost_usd is None else called_once(snapshot)
        self.snapshot = behind_clients(bounded, self.key_id)
        self.resume_at: datetime | None = None
        self.no_room = ""
        self._until = time.monotonic() + SLICE_SECONDS
        self._stopped = False
        self._looking = asyncio.Lock()

    @property
    def is_over(self) -> bool:
        return self._stopped or bool(self.no_room) or time.monotonic() >= self._until

    def pause(self, seconds: float) -> None:
        self._stopped = True
        self.resume_at = timezone.now() + timedelta(seconds=min(max(seconds, 1.0), _MAX_WAIT_SECONDS))

    async def fail(self, code: ExperimentFailure, problem: str) -> None:
        self._stopped = True
        await in_database_thread(end_experiment, self.experiment.pk, ExperimentState.FAILED, problem, code=code)

    async def look(self) -> None:
        async with self._looking:
            if not self._stopped and await in_database_thread(report.look, self.experiment.pk):
                self._stopped = True
                await in_database_thread(
                    end_experiment, self.experiment.pk, ExperimentState.COMPLETED, stopped_early=True
                )


class Purse:
    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._under_way = 0
        self._settled = asyncio.Event()

    @asynccontextmanager
    async def reserved(self, who: str, costs: Iterable[Callable[[], Decimal]]) -> AsyncIterator[Decimal]:
        """Yields the reservation for requests of `who`, the sum of `costs`; the caller books the actual cost.

        Waits while requests under way may leave room. Raises NoRoomError.
        """
        if self._experiment.max_cost_usd is None:
            yield NOTHING
            return
        amount = _sum_of(who, costs)
        await self._take(who, amount)
        self._under_way += 1
        try:
            yield amount
        finally:
            self._under_way -= 1
            self._settled.set()
            self._settled = asyncio.Event()

    async def _take(self, who: str, amount: Decimal) -> None:
        while True:
            settled = self._settled
            if await in_database_thread(budget.reserve, self._experiment.pk, amount):
                return
            if not settled.is_set():
                if not self._under_way:
                    raise NoRoomError(
                        f"max_cost_usd: the next request of {who} may cost up to ${amount.normalize():f}, and of"
                        f" ${self._experiment.max_cost_usd:f} there is less left. Its max_tokens bounds what an answer"
                        " may cost."
                    )
                await settled.wait()


def _sum_of(who: str, costs: Iterable[Callable[[], Decimal]]) -> Decimal:
    try:
        return sum((cost() for cost in costs), NOTHING)
    except UnknownCostError as problem:
        words = f"max_cost_usd: what the next request of {who} may cost at most cannot be said: {problem}."
        raise NoRoomError(words) from None
