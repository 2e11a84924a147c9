"""Sends the batches of one destination, oldest first, until the collector has taken or refused each.

Each destination has its own sender, so that a slow or unreachable one does not delay the others.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from uuid import UUID

import aiohttp
from django.conf import settings

from analytics.trace_export.batches import Selection
from analytics.trace_export.delivery import Answer, Target, Verdict, post
from analytics.trace_export.outbox import Batch, Outbox

logger = logging.getLogger("analytics.trace_export")

# A collector that needs a second for each batch still keeps up with the shipper's pace.
CONCURRENT = 4
_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 60.0
_MAX_RETRY_AFTER_SECONDS = 3600.0
_LOOK_SECONDS = 1.0
UNREADABLE = "The stored headers can no longer be decrypted: enter them again."


@dataclass(frozen=True, slots=True)
class Destination:
    """`target` is None if the headers cannot be decrypted."""

    id: UUID
    project_id: str
    enabled: bool
    selection: Selection
    target: Target | None


class Sender:
    """A destination's sender. `change` may replace the destination at any time; call `wake` for new batches."""

    def __init__(self, destination: Destination, outbox: Outbox, session: aiohttp.ClientSession) -> None:
        self.destination = destination
        self.outbox = outbox
        self._session = session
        self._failures = 0
        self._not_before = 0.0
        self._is_stopped = False
        self._woken = asyncio.Event()

    def change(self, destination: Destination) -> None:
        """Retries at once: the change may have mended what the collector refused."""
        if destination != self.destination:
            self.destination = destination
            self._not_before = 0.0
            self.wake()

    def stop(self) -> None:
        self._is_stopped = True
        self.wake()

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        while not self._is_stopped:
            self._drop_overdue()
            self._woken.clear()
            if self._may_send():
                await self._send_round()
            else:
                await self._wait()

    def _may_send(self) -> bool:
        return self.destination.enabled and bool(self.outbox.waiting) and time.monotonic() >= self._not_before

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _send_round(self) -> None:
        # A collector that was away is asked with one batch before it gets all of them.
        batches = list(self.outbox.waiting.values())[: 1 if self._failures else CONCURRENT]
        # All are waited for, so that none is on its way when it is sent again.
        outcomes = await asyncio.gather(*(self._send(batch) for batch in batches), return_exceptions=True)
        answers = [_raised(outcome) for outcome in outcomes]
        failed = [answer for answer in answers if answer.verdict is Verdict.RETRY]
        if not failed:
            self._failures = 0
            return
        self._failures += 1
        pause = min(_FIRST_PAUSE_SECONDS * 2 ** min(self._failures - 1, 10), _MAX_PAUSE_SECONDS)
        asked = min(max(answer.retry_after or 0.0 for answer in failed), _MAX_RETRY_AFTER_SECONDS)
        # Destinations that failed together are not to come back together.
        self._not_before = time.monotonic() + max(pause * random.uniform(0.8, 1.2), asked)  # noqa: S311 - no secret
        if self._failures == 1:
            logger.warning("export.failing destination_id=%s reason=%s", self.destination.id, failed[0].detail)

    async def _send(self, batch: Batch) -> Answer:
        target = self.destination.target
        if target is None:
            answer = Answer(Verdict.RETRY, detail=UNREADABLE)
        else:
            answer = await post(self._session, target, batch.path.read_bytes(), batch.id)
        if answer.verdict is not Verdict.RETRY:
            # This comes first: a kill before it sends the same batch again.
            self.outbox.remove(batch)
        self._count(batch, answer)
        return answer

    def _count(self, batch: Batch, answer: Answer) -> None:
        counts, now = self.outbox.counts, time.time()
        if answer.verdict is Verdict.TAKEN:
            rejected = min(answer.rejected, batch.spans)
            counts.sent += batch.spans - rejected
            counts.rejected += rejected
            counts.last_success = now
        elif answer.verdict is Verdict.REFUSED:
            counts.dropped += batch.spans
            logger.warning(
                "export.refused destination_id=%s spans=%d status=%d", self.destination.id, batch.spans, answer.status
            )
        if answer.detail:
            counts.last_error, counts.last_error_at = answer.detail, now

    def _drop_overdue(self) -> None:
        before = time.time() - settings.TRACE_EXPORT_HOURS * 3600
        dropped = list(self.outbox.overdue(max_bytes=settings.TRACE_EXPORT_BYTES, before=before))
        for batch in dropped:
            self.outbox.remove(batch)
            self.outbox.counts.dropped += batch.spans
        if dropped:
            spans = sum(batch.spans for batch in dropped)
            logger.error("export.dropped destination_id=%s spans=%d", self.destination.id, spans)


def _raised(outcome: Answer | BaseException) -> Answer:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
