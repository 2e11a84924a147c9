"""The gateway's application in a worker that says how many requests plans have answered: GET /planned."""

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
        body = b"%d" % current_runtime().planned
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


application = Counted()
