"""The event loops and the fetchers of the tests."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable

import pytest
import uvloop

from integrations.media import MediaFetcher, MediaLimits
from integrations.media import client as media_client
from integrations.transport.proxies import no_proxy
from integrations.transport.resolver import Lookup
from tests.integrations.media.exchanges import LIMITS, NewFetcher


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Returns the event loops for the tests: workers run on uvloop, all other processes on asyncio's own loop."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def new_fetcher() -> AsyncIterator[NewFetcher]:
    fetchers: list[MediaFetcher] = []

    def make(
        limits: MediaLimits = LIMITS, *, lookup: Lookup | None = None, tls: ssl.SSLContext | None = None
    ) -> MediaFetcher:
        fetchers.append(MediaFetcher(limits, proxy_for=no_proxy, lookup=lookup, tls=tls))
        return fetchers[-1]

    yield make
    for fetcher in fetchers:
        await fetcher.close()


@pytest.fixture
def _loopback_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes 127.0.0.1 count as a public address; no other address is public here."""
    monkeypatch.setattr(media_client, "only_public", lambda host, address: str(address) == "127.0.0.1")
