"""The fixtures of the suite that runs over every transport and both event loops."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable

import pytest
import trustme
import uvloop

from integrations.transport.aiohttp_client import AiohttpTransport
from integrations.transport.base import Transport
from integrations.transport.pool import PooledTransport

NewTransport = Callable[..., Transport]

TRANSPORTS: dict[str, NewTransport] = {"pool": PooledTransport, "aiohttp": AiohttpTransport}


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Returns the event loops for the tests: workers run on uvloop, all other processes on asyncio's own loop."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(params=sorted(TRANSPORTS))
def new_transport(request: pytest.FixtureRequest) -> NewTransport:
    return TRANSPORTS[request.param]


@pytest.fixture
async def transport(new_transport: NewTransport) -> AsyncIterator[Transport]:
    transport = new_transport()
    yield transport
    await transport.close()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    """Returns a TLS context with a certificate for `localhost`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context


@pytest.fixture(scope="session")
def client_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context
