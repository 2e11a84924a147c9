"""Announces changes of configuration to every worker: one Redis channel, one short message per change."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings

from core.redis.clients import background_client, shared_client
from core.redis.failures import REDIS_ERRORS, reason
from core.redis.subscription import next_message, subscription

if TYPE_CHECKING:
    # Every process announces changes; only web workers load what snapshots are made with.
    from gateway.snapshot.store import SnapshotStore

logger = logging.getLogger("gateway.snapshot")

CHANNEL = "svc:configuration"
PRICES = "prices"

_ANSWER_SECONDS = 1.0


def announce(change: str) -> None:
    """Tells every worker that a project (its id) or the price table (`PRICES`) has changed.

    A Redis outage does not fail the change: workers re-read every `SNAPSHOT_SECONDS` in any case.
    """
    try:
        shared_client(settings.REDIS_URL, seconds=_ANSWER_SECONDS).publish(CHANNEL, change)
    except REDIS_ERRORS as error:
        logger.warning("announcement.failed error=%s", reason(error))


class Follower:
    """Applies announcements in two tasks, so that a revoked key need not wait for prices."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._prices_changed = asyncio.Event()

    async def follow_projects(self) -> None:
        lost = False
        while True:
            client = background_client(settings.REDIS_URL, connect_seconds=_ANSWER_SECONDS, retries=0)
            try:
                async with subscription(client, CHANNEL, seconds=_ANSWER_SECONDS) as channel:
                    if lost:
                        lost = False
                        logger.warning("subscription.restored")
                    # Changes that were announced before the subscription have to be read.
                    await self._store.refresh_all()
                    while True:
                        change = (await next_message(channel, seconds=_ANSWER_SECONDS)).decode()
                        if change == PRICES:
                            self._prices_changed.set()
                        else:
                            await self._store.refresh_project(UUID(change))
            except REDIS_ERRORS as error:
                if not lost:
                    lost = True
                    logger.warning("subscription.lost error=%s", reason(error))
            finally:
                await client.aclose()
            await asyncio.sleep(1.0)

    async def follow_prices(self) -> None:
        while True:
            await self._prices_changed.wait()
            self._prices_changed.clear()
            try:
                await self._store.refresh_prices()
            except BaseException:
                # The change is still to be read when this task is begun again.
                self._prices_changed.set()
                raise


async def refresh_regularly(store: SnapshotStore) -> None:
    while True:
        await asyncio.sleep(settings.SNAPSHOT_SECONDS)
        await store.refresh_all()
        await store.renew_credentials()
