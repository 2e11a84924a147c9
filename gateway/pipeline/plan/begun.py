"""A provider's call that a plan has begun, as the stages find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.pipeline.context import RoutingState
from integrations.transport.base import BegunResponse, Sending, Timeouts, Transport, UpstreamResponse
from integrations.transport.request_head import RequestHead


class BegunTransport:
    """A worker's transport for a request whose first call has been written."""

    def __init__(self, transport: Transport, response: BegunResponse, routing: RoutingState, called_at: float) -> None:
        self._transport = transport
        self._response: BegunResponse | None = response
        self._routing = routing
        self._called_at = called_at

    async def send(self, request: Any, timeouts: Timeouts, sending: Sending | None = None) -> UpstreamResponse:
        response, self._response = self._response, None
        if response is None:
            return await self._transport.send(request, timeouts, sending)
        self._routing.called_at = self._called_at
        self._routing.is_written = True
        return await response.answered(timeouts)

    def begin(self, head: RequestHead, body: bytes, timeouts: Timeouts, on_news: Callable[[], None]) -> None:
        """Begins nothing: the stages wait."""

    async def close(self) -> None:
        await self._transport.close()
