from __future__ import annotations

from asgiref.sync import sync_to_async
from django.conf import settings

from core.encryption.canary import wrong_keys_by_own_connection
from core.processes.draining import delay_termination, draining
from gateway.protocol.reply import Receive, Scope, Send
from gateway.worker.current import current_runtime, stop_runtime
from gateway.worker.state import begin_observation


async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            if problem := await sync_to_async(wrong_keys_by_own_connection, thread_sensitive=False)():
                await send({"type": "lifespan.startup.failed", "message": problem})
                return
            runtime = current_runtime()
            delay_termination(draining, runtime.loop, settings.PRESTOP_SECONDS)
            begin_observation(runtime)
            await runtime.limiter.tried()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await stop_runtime()
            await send({"type": "lifespan.shutdown.complete"})
            return
