"""Sends the transport tests' request and reads its answer."""

from __future__ import annotations

from collections.abc import Mapping

from integrations.providers.base import UpstreamRequest
from integrations.transport.base import Timeouts, Transport
from tests.waiting import TIMEOUT_SECONDS

LONG_TIMEOUTS = Timeouts(connect=TIMEOUT_SECONDS, first_byte=TIMEOUT_SECONDS, idle=TIMEOUT_SECONDS)
LIMIT = 64 * 1024 * 1024


def post(url: str, body: bytes = b"{}", headers: Mapping[str, str] | None = None) -> UpstreamRequest:
    given = {"content-type": "application/json"} if headers is None else headers
    return UpstreamRequest("POST", url, given, body)


async def fetch(transport: Transport, url: str, body: bytes = b"{}", timeouts: Timeouts = LONG_TIMEOUTS) -> bytes:
    """Returns the body of a whole exchange."""
    response = await transport.send(post(url, body), timeouts)
    try:
        return await response.read(limit=LIMIT)
    finally:
        response.close()
