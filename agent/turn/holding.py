from __future__ import annotations

import asyncio
import logging
import time
from types import TracebackType
from typing import Self

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import InterfaceError

from agent.errors import RunLostError
from agent.services import Run
from agent.worker.leases import renew_lease
from agent.worker.threads import in_thread
from core.processes.background_tasks import keep_running

logger = logging.getLogger("agent.chat")


class HeldLease:
    """A context that ends with RunLostError once another run has taken the conversation."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lost = False

    async def __aenter__(self) -> Self:
        owner = asyncio.current_task()
        if owner is None:
            raise RuntimeError("a lease can be held only inside a task")
        self._owner, self._cancelling = owner, owner.cancelling()
        self._task = keep_running("agent.lease", self._keep)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._task.cancel()
        # As in asyncio.timeout, only a cancellation by this context becomes RunLostError.
        if self._lost and self._owner.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise RunLostError from error

    async def _keep(self) -> None:
        sure_until = time.monotonic() + settings.AGENT_LEASE_SECONDS
        while not self._lost:
            await asyncio.sleep(settings.AGENT_LEASE_SECONDS / 3)
            renewed_at = time.monotonic()
            try:
                held = await in_thread(renew_lease, self._run.conversation_id, self._run.run_id)
            except (DatabaseError, InterfaceError):
                # While the database is unreachable no other run can take the lease either.
                logger.warning("lease.not_renewed conversation_id=%s", self._run.conversation_id)
                held = renewed_at < sure_until
            else:
                sure_until = renewed_at + settings.AGENT_LEASE_SECONDS
            self._lost = not held
        self._owner.cancel()
