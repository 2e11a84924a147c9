"""The gateway's application in a worker that says how many requests plans have answered, declined and handed over: GET
/planned."""

from __future__ import annotations

from typing import Any

from config.asgi import application as gateway
from gateway.worker.current import current_runtime


class Counted:
    direct = gateway.direct
    direct_patterns = gateway.direct_patterns

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope.get("path") != "/planned":
            await gateway(scope, receive, send)
            return
        runtime = current_runtime()
        body = b"%d %d %d" % (runtime.planned, runtime.declined, runtime.handed_over)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


application = Counted()
