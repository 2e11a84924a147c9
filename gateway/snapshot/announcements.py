"""Announces changes of configuration to every worker: one Redis channel, one short message per change."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING
from uuid import UUID

import redis
import redis.asyncio
from django.conf import settings

if TYPE_CHECKING:
    # Every process announces changes; only web workers load what snapshots are made with.
    from gateway.snapshot.store import SnapshotStore

logger = logging.getLogger("gateway.snapshot")

CHANNEL = "svc:configuration"
PRICES = "prices"

# The client is made on first use, so that a fork does not share its connections.
_publisher: redis.Redis | None = None


def announce(change: str) -> None:
    """Tells every worker that a project (its id) or the price table (`PRICES`) has changed.

    A Redis that is away does not fail the change: workers re-read every `SNAPSHOT_SECONDS` in any case.
    """
    global _publisher
    if _publisher is None:
        _publisher = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)
    try:
        _publisher.publish(CHANNEL, change)
    except redis.RedisError as error:
        logger.warning("announcement.failed error=%s", type(error).__name__)


class Follower:
    """Applies announcements in two tasks of a worker: prices concern all projects, and a revoked key must not wait for
    them."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._prices_changed = asyncio.Event()

    async def follow_projects(self) -> None:
        """Applies the changes of projects for as long as the worker runs, and re-reads everything after a gap in the
        subscription."""
        lost = False
        while True:
            client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=1)
            try:
                async with client.pubsub(ignore_subscribe_messages=True) as channel:
                    await channel.subscribe(CHANNEL)
                    # Messages arrive only after Redis has confirmed the subscription.
                    await channel.get_message(timeout=None)
                    if lost:
                        lost = False
                        logger.warning("subscription.restored")
                    # Changes that were announced before the subscription have to be read.
                    await self._store.refresh_all()
                    async for message in channel.listen():
                        change = message["data"].decode()
                        if change == PRICES:
                            self._prices_changed.set()
                        else:
                            await self._store.refresh_project(UUID(change))
            except (redis.RedisError, OSError) as error:
                if not lost:
                    lost = True
                    logger.warning("subscription.lost error=%s", type(error).__name__)
            finally:
                await client.aclose()
            await asyncio.sleep(1.0)

    async def follow_prices(self) -> None:
        """Re-reads the prices after each of their changes for as long as the worker runs."""
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
