"""POST /api/agent/mcp: streamable HTTP, one message a call. No sessions, so any worker may answer any call.

Whoever may not call gets the envelope of the management API; whoever may is answered by the SDK.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Any

from django.conf import settings
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from rest_framework.exceptions import MethodNotAllowed

from agent.bodies import read_body
from agent.limits import MCP_BODY_BYTES
from agent.mcp.admission import Client, admit
from agent.mcp.server import CLIENT, REQUEST_ID, SERVER
from agent.refusals import refuse
from agent.running import running
from agent.threads import in_thread
from core.errors import ServiceUnavailableError
from gateway import headers
from gateway.errors import RequestTimeoutError
from gateway.pipeline.parse import ClientGoneError, Receive
from gateway.pipeline.watch import ClientWatch
from gateway.reply import Message, Reply, Send
from gateway.runtime import current_runtime

logger = logging.getLogger("agent.mcp")

_RESTARTING = "The service is restarting; send the message again."

# `agent.mcp.origins` has looked already, at what Django's settings allow.
_SECURITY = TransportSecuritySettings(enable_dns_rebinding_protection=False)


async def answer(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """An ASGI application."""
    reply = Reply(send, uuid.uuid4().hex)
    watch: ClientWatch | None = None
    with running():
        try:
            client = await _admitted(scope)
            # From here on: what the admission takes is not the client's time.
            watch = ClientWatch(receive, current_runtime().loop, settings.GATEWAY_BODY_SECONDS)
            body = await read_body(receive, MCP_BODY_BYTES)
            watch.body_arrived()
            await _exchange({**scope, CLIENT: client, REQUEST_ID: reply.request_id}, body, _watched(send, reply, watch))
        except ClientGoneError:
            return
        except asyncio.CancelledError:
            await _broken_off(reply, watch, scope["method"])
        except Exception as error:
            if reply.started:
                raise
            await refuse(reply, error, method=scope["method"])
        finally:
            if watch is not None:
                watch.stop()


async def _broken_off(reply: Reply, watch: ClientWatch | None, method: str) -> None:
    """By a client that left, one whose body never came, or a worker that stops."""
    if watch is not None:
        watch.absorb()
    if watch is not None and watch.disconnected:
        logger.info("mcp.client_left request_id=%s", reply.request_id)
    elif watch is not None and watch.late:
        await refuse(reply, RequestTimeoutError("The request body did not arrive in time"), method=method)
    elif reply.started:
        raise asyncio.CancelledError
    else:
        await refuse(reply, ServiceUnavailableError(_RESTARTING), method=method)


async def _admitted(scope: dict[str, Any]) -> Client:
    if scope["method"] != "POST":
        # No stream to listen to and no session to end: nothing is ever sent unasked.
        raise MethodNotAllowed(scope["method"])
    return await in_thread(admit, scope)


async def _exchange(scope: dict[str, Any], body: bytes, send: Send) -> None:
    """The SDK's manager lives as long as the call, so that all it starts ends with it, however it ends."""
    manager = StreamableHTTPSessionManager(
        SERVER,
        stateless=True,
        json_response=True,
        security_settings=_SECURITY,
        max_request_body_size=MCP_BODY_BYTES,
    )
    async with manager.run():
        await manager.handle_request(scope, _Body(body).receive, send)


class _Body:
    """A body that has been read, as ASGI messages. That the client left is for `ClientWatch` to hear."""

    def __init__(self, body: bytes) -> None:
        self._messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive(self) -> Message:
        if self._messages:
            return self._messages.pop()
        await asyncio.Event().wait()
        raise RuntimeError("waits until it is cancelled")


def _watched(send: Send, reply: Reply, watch: ClientWatch) -> Send:
    """Names the call in its answer. What the server says of the client after the answer is not that it left."""

    async def watched(message: Message) -> None:
        if message["type"] == "http.response.start":
            reply.started = True
            stamp = (headers.REQUEST_ID, reply.request_id.encode())
            message = {**message, "headers": [*message.get("headers", ()), stamp]}
        elif not message.get("more_body", False):
            watch.stop()
        await send(message)

    return watched
