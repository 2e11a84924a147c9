"""The sandbox on a port of its own, and the official SDK connected to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from aiohttp import web
from openai import OpenAI

from integrations.sandbox.server import Sandbox
from tests.waiting import TIMEOUT_SECONDS


@pytest.fixture(scope="module")
def sandbox_url() -> Iterator[str]:
    """Yields the address of a server that runs on an event loop of its own in a thread."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(Sandbox().application(), handler_cancellation=True)

    async def start() -> str:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}/v1"

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield asyncio.run_coroutine_threadsafe(start(), loop).result(TIMEOUT_SECONDS)
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(TIMEOUT_SECONDS)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def client(sandbox_url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=sandbox_url, api_key="none", max_retries=0, timeout=TIMEOUT_SECONDS) as client:
        yield client
