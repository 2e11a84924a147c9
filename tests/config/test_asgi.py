"""The ASGI application under the servers that call it, other than uvicorn too."""

from __future__ import annotations

from typing import Any

import pytest
from channels.consumer import AsyncConsumer

from config.asgi import application, http
from gateway.consumers import SURFACES


async def test_websocket__under_any_server__is_refused_without_a_traceback() -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application({"type": "websocket", "path": "/", "headers": []}, receive, send)

    assert sent == [{"type": "websocket.close"}]


@pytest.mark.parametrize("root_path", ["", "/behind"])
@pytest.mark.parametrize("path", sorted(application.direct))
async def test_paths_of_models__by_the_router__go_to_the_gateway(path: bytes, root_path: str) -> None:
    scope = {"type": "http", "method": "GET", "path": root_path + path.decode(), "root_path": root_path, "headers": []}

    assert await status_of(application, scope) == 405


def test_paths_of_models__of_every_surface__can_be_handed_over_by_a_server() -> None:
    assert set(application.direct.values()) == set(SURFACES)
    assert len(application.direct) == 4 * len(SURFACES), "with a second version, and with a slash at the end"


def test_routes__of_the_application__are_consumers_of_channels_until_those_of_django() -> None:
    *routed, django = (route.callback for route in http.routes)
    classes = {getattr(callback, "consumer_class", type(callback)) for callback in routed}

    assert all(issubclass(cls, AsyncConsumer) for cls in classes), classes
    assert not isinstance(django, AsyncConsumer)


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
