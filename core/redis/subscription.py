from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import redis.asyncio
from django.conf import settings
from redis.asyncio.client import PubSub

from core.redis.clients import subscriber_node


@asynccontextmanager
async def subscription(client: redis.asyncio.Redis, channel: str, *, seconds: float) -> AsyncIterator[PubSub]:
    """Subscribes on a new connection, each step within `seconds`. Receives all messages published after the block was
    entered.

    The client must not retry: a silent resubscription would hide missed messages.
    """
    async with asyncio.timeout(seconds):
        # The client of a cluster reads the map of the nodes again.
        await client.aclose()
        await client.initialize()
    async with client.pubsub(**subscriber_node(client)) as subscribed:
        async with asyncio.timeout(seconds):
            await subscribed.subscribe(channel)
            # Messages arrive only after Redis has confirmed the subscription.
            await subscribed.get_message(timeout=None)
        yield subscribed


async def next_message(channel: PubSub, *, seconds: float) -> bytes:
    """Waits for the next message without a limit.

    Pings, to be answered within `seconds`, show that Redis is there and keep proxies from closing the connection.
    """
    while True:
        message = await channel.get_message(timeout=settings.REDIS_PING_SECONDS)
        if message is None:
            async with asyncio.timeout(seconds):
                await channel.ping()
                message = await channel.get_message(timeout=None)
        if message is not None and message["type"] == "message":
            data: bytes = message["data"]
            return data
