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


async def follow(store: SnapshotStore) -> None:
    """Applies announcements for as long as the worker runs, and re-reads everything after a gap in the subscription."""
    prices_changed = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(_follow_prices(store, prices_changed), name="gateway.follow.prices")
        await _follow_projects(store, prices_changed)


async def _follow_projects(store: SnapshotStore, prices_changed: asyncio.Event) -> None:
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
                await store.refresh_all()
                async for message in channel.listen():
                    change = message["data"].decode()
                    if change == PRICES:
                        prices_changed.set()
                    else:
                        await store.refresh_project(UUID(change))
        except (redis.RedisError, OSError) as error:
            if not lost:
                lost = True
                logger.warning("subscription.lost error=%s", type(error).__name__)
        finally:
            await client.aclose()
        await asyncio.sleep(1.0)


async def _follow_prices(store: SnapshotStore, changed: asyncio.Event) -> None:
    """Re-reads prices in a task of its own: they concern all projects, and a revoked key must not wait for them."""
    while True:
        await changed.wait()
        changed.clear()
        await store.refresh_prices()


async def refresh_regularly(store: SnapshotStore) -> None:
    while True:
        await asyncio.sleep(settings.SNAPSHOT_SECONDS)
        await store.refresh_all()
