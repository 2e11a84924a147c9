"""The ASGI lifespan: the runtime is ready before the first request and closed in order after the last."""

from __future__ import annotations

from gateway.consumers import Scope
from gateway.pipeline.parse import Receive
from gateway.reply import Send
from gateway.runtime import current_runtime, stop_runtime


async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await current_runtime().limiter.tried()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await stop_runtime()
            await send({"type": "lifespan.shutdown.complete"})
            return
