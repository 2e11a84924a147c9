"""The application under a server that is not ours."""

from __future__ import annotations

from typing import Any

from config.asgi import application


async def test_websocket__under_any_server__is_refused_without_a_traceback() -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application({"type": "websocket", "path": "/", "headers": []}, receive, send)

    assert sent == [{"type": "websocket.close"}]
