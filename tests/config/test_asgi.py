from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import uvicorn
from channels.consumer import AsyncConsumer
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from config.asgi import application, http
from gateway.consumers import SURFACES
from tests.waiting import eventually

OTHER_PATHS = [
    "/",
    "/healthz",
    "/metrics",
    "/api/gateway",
    "/api/gateway/v1/models",
    "/api/agent/mcp",
    "/api/llm/settings",
    "/admin/login/",
]


async def denial(path: str, **scope: Any) -> tuple[int, dict[bytes, bytes], Any]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asked = {"type": "websocket", "path": path, "headers": [], "extensions": {"websocket.http.response": {}}, **scope}
    await application(asked, receive, send)
    start, end = sent
    assert (start["type"], end["type"]) == ("websocket.http.response.start", "websocket.http.response.body")
    return start["status"], dict(start["headers"]), json.loads(end["body"])


async def test_websocket__under_a_server_without_denials__is_closed_without_a_traceback() -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application({"type": "websocket", "path": "/", "headers": []}, receive, send)

    assert sent == [{"type": "websocket.close"}]


@pytest.mark.parametrize("path", [*(path.decode() for path in application.direct), *OTHER_PATHS])
async def test_websocket__on_a_path_that_exists__asks_for_http(path: str) -> None:
    status, headers, answer = await denial(path)

    assert (status, answer["error"]["type"]) == (426, "invalid_request_error")
    assert (headers[b"upgrade"], headers[b"connection"]) == (b"HTTP/1.1", b"upgrade")


async def test_websocket__on_a_path_of_messages__gets_the_error_of_that_protocol() -> None:
    _, _, answer = await denial("/api/gateway/v1/messages")
    assert (answer["type"], answer["error"]["code"]) == ("error", "websocket_unsupported")


async def test_websocket__over_http2__names_no_header_of_a_connection() -> None:
    status, headers, _ = await denial("/api/gateway/v1/responses", http_version="2")
    assert status == 426
    assert not {b"upgrade", b"connection"} & set(headers)


async def test_websocket__below_another_path__goes_by_the_rest_of_it() -> None:
    status, _, _ = await denial("/behind/api/gateway/v1/responses", root_path="/behind")
    assert status == 426


@pytest.mark.parametrize("path", ["/nowhere", "/api/gateway/v1/nothing", "/api/llm/nothing"])
async def test_websocket__on_no_path__is_not_found(path: str) -> None:
    status, _, answer = await denial(path)
    assert (status, answer["error"]["code"]) == (404, "not_found")


async def test_websocket__under_uvicorn_with_its_own_protocols__asks_for_http() -> None:
    server = uvicorn.Server(
        uvicorn.Config(application, port=0, lifespan="off", ws="websockets-sansio", log_config=None)
    )
    serving = asyncio.create_task(server.serve())
    await eventually(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://127.0.0.1:{port}/api/gateway/v1/responses")
    finally:
        server.should_exit = True
        await serving

    answer = refused.value.response
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "HTTP/1.1")
    assert json.loads(answer.body)["error"]["code"] == "websocket_unsupported"


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
