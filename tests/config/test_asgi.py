"""The ASGI application under the servers that call it, other than uvicorn too."""

from __future__ import annotations

from typing import Any

import pytest

from config import asgi
from config.asgi import application
from gateway.routing import DIRECT


async def test_websocket__under_any_server__is_refused_without_a_traceback() -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application({"type": "websocket", "path": "/", "headers": []}, receive, send)

    assert sent == [{"type": "websocket.close"}]


@pytest.mark.parametrize("root_path", ["", "/behind"])
@pytest.mark.parametrize("path", sorted(DIRECT))
async def test_paths_of_models__with_and_without_the_router__go_to_the_gateway(path: str, root_path: str) -> None:
    scope = {"type": "http", "method": "GET", "path": root_path + path, "root_path": root_path, "headers": []}

    assert [await status_of(app, scope) for app in (application, asgi.router)] == [405, 405]


async def test_other_paths__of_the_gateway__are_answered_by_the_router() -> None:
    scope = {"type": "http", "method": "POST", "path": "/api/gateway/v1/chat/completions/x", "headers": []}

    assert await status_of(application, scope) == 404


async def status_of(application: Any, scope: dict[str, Any]) -> int:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application(scope, receive, send)
    status: int = sent[0]["status"]
    return status
