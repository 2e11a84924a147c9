"""POST /api/agent/mcp: MCP's streamable HTTP, one message per call. Without sessions, any worker can answer.

Callers without access get the management API's error envelope; the MCP SDK answers all others.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings
from rest_framework.exceptions import MethodNotAllowed

from agent.mcp.admission import Client, admit
from agent.refusals import refuse
from agent.worker.limits import MCP_BODY_BYTES
from agent.worker.running import running
from agent.worker.threads import in_thread
from core.errors import ServiceUnavailableError
from gateway.errors import RequestTimeoutError
from gateway.http.bodies import read_body
from gateway.http.consumer import SharedConsumer
from gateway.pipeline.parse import ClientGoneError
from gateway.pipeline.watch import ClientWatch
from gateway.protocol import headers
from gateway.protocol.reply import Message, Receive, Reply, Scope, Send
from gateway.worker.current import current_runtime

logger = logging.getLogger("agent.mcp")

_RESTARTING = "The service is restarting; send the message again."

# An exchange takes the ASGI scope, the client, the request's id, the body and the function that sends the answer.
Exchange = Callable[[dict[str, Any], Client, str, bytes, Send], Awaitable[None]]


class McpConsumer(SharedConsumer):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = Reply(send, uuid.uuid4().hex)
        watch: ClientWatch | None = None
        with running():
            try:
                client, exchange = await _admitted(scope)
                # The time limit begins here, so that the admission is not counted against the client.
                watch = ClientWatch(receive, current_runtime().loop, settings.GATEWAY_BODY_SECONDS)
                body = await read_body(scope, receive, MCP_BODY_BYTES)
                watch.body_arrived()
                await exchange(scope, client, reply.request_id, body, _watched(send, reply, watch))
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


async def _admitted(scope: dict[str, Any]) -> tuple[Client, Exchange]:
    if scope["method"] != "POST":
        # GET and DELETE are refused: the server sends nothing unasked and has no sessions.
        raise MethodNotAllowed(scope["method"])
    return await in_thread(_admit, scope)


def _admit(scope: dict[str, Any]) -> tuple[Client, Exchange]:
    """Imports the MCP SDK with a worker's first client. The import takes a second of CPU, so workers without MCP skip
    it, and in this thread it does not delay other requests."""
    client = admit(scope)
    from agent.mcp.exchange import exchange

    return client, exchange


def _watched(send: Send, reply: Reply, watch: ClientWatch) -> Send:
    async def watched(message: Message) -> None:
        if message["type"] == "http.response.start":
            reply.started = True
            stamp = (headers.REQUEST_ID, reply.request_id.encode())
            message = {**message, "headers": [*message.get("headers", ()), stamp]}
        elif not message.get("more_body", False):
            watch.stop()
        await send(message)

    return watched
