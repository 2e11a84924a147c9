"""The application whose consumers of client protocols answer with their operation and how they were reached."""

from __future__ import annotations

import json
from typing import Any

from config.asgi import application
from gateway.consumers import SurfaceConsumer

__all__ = ["application"]


async def answer(consumer: SurfaceConsumer, scope: dict[str, Any], receive: Any, send: Any) -> None:
    body = json.dumps({"operation": consumer.surface.operation, "by_router": "url_route" in scope}).encode()
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


SurfaceConsumer.__call__ = answer  # type: ignore[assignment, method-assign]
