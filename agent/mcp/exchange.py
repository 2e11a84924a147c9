"""Has the MCP SDK answer one message. `agent.mcp.endpoint` imports this file, and so the SDK, on the first call."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from agent.mcp.admission import Client
from agent.mcp.server import CLIENT, REQUEST_ID, SERVER
from agent.worker.limits import MCP_BODY_BYTES
from gateway.protocol.reply import Message, Send

# `agent.mcp.admission` has already checked the origin, by Django's settings.
_NO_MESSAGE = (
    "The body is not a JSON-RPC 2.0 message: it needs jsonrpc (2.0), method, and for a request id (a text or a number)."
)
_SECURITY = TransportSecuritySettings(enable_dns_rebinding_protection=False)


async def exchange(scope: dict[str, Any], client: Client, request_id: str, body: bytes, send: Send) -> None:
    manager = StreamableHTTPSessionManager(
        SERVER,
        stateless=True,
        json_response=True,
        security_settings=_SECURITY,
        max_request_body_size=MCP_BODY_BYTES,
    )
    async with manager.run():
        known = {**scope, CLIENT: client, REQUEST_ID: request_id}
        await manager.handle_request(known, _Body(body).receive, _in_one_sentence(send))


def _in_one_sentence(send: Send) -> Send:
    begun: list[Message] = []

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == HTTPStatus.BAD_REQUEST:
            begun.append(message)
            return
        if begun:
            start, body = begun.pop(), _shortened(message.get("body", b""))
            headers = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
            await send({**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
            message = {**message, "body": body}
        await send(message)

    return sent


def _shortened(body: bytes) -> bytes:
    if b'"Validation error: ' not in body:
        return body
    answer = json.loads(body)
    answer["error"]["message"] = _NO_MESSAGE
    return json.dumps(answer).encode()


class _Body:
    def __init__(self, body: bytes) -> None:
        self._messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive(self) -> Message:
        if self._messages:
            return self._messages.pop()
        await asyncio.Event().wait()
        raise RuntimeError("waits until it is cancelled")
