"""Has the MCP SDK answer one message. `agent.mcp.endpoint` imports this file, and so the SDK, with the first call."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from agent.mcp.admission import Client
from agent.mcp.server import CLIENT, REQUEST_ID, SERVER
from agent.worker.limits import MCP_BODY_BYTES
from gateway.protocol.reply import Message, Send

# `agent.mcp.admission` has already checked the origin, by Django's settings.
_SECURITY = TransportSecuritySettings(enable_dns_rebinding_protection=False)


async def exchange(scope: dict[str, Any], client: Client, request_id: str, body: bytes, send: Send) -> None:
    """Runs the SDK's session manager for one call, so that everything it starts ends with the call."""
    manager = StreamableHTTPSessionManager(
        SERVER,
        stateless=True,
        json_response=True,
        security_settings=_SECURITY,
        max_request_body_size=MCP_BODY_BYTES,
    )
    async with manager.run():
        await manager.handle_request({**scope, CLIENT: client, REQUEST_ID: request_id}, _Body(body).receive, send)


class _Body:
    """A body that has been read, as ASGI messages. `ClientWatch` reports a client that left."""

    def __init__(self, body: bytes) -> None:
        self._messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive(self) -> Message:
        if self._messages:
            return self._messages.pop()
        await asyncio.Event().wait()
        raise RuntimeError("waits until it is cancelled")
