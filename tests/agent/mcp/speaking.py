from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from tests.agent.chat.playing import headers_of
from tests.gateway.service import Gateway
from tests.waiting import TIMEOUT_SECONDS

PATH = "/api/agent/mcp"
ACCEPT = "application/json, text/event-stream"


@asynccontextmanager
async def session(
    gateway: Gateway, *, headers: dict[str, str] | None = None, spread: bool = False
) -> AsyncIterator[ClientSession]:
    """With `spread` its messages go to all workers in turn."""
    hooks = {"request": [_spreading(itertools.cycle(gateway.service.ports))]} if spread else {}
    async with (
        httpx2.AsyncClient(
            headers=headers or headers_of(gateway), timeout=4 * TIMEOUT_SECONDS, event_hooks=hooks
        ) as http,
        streamable_http_client(gateway.service.base_url() + PATH, http_client=http) as (incoming, outgoing),
        ClientSession(incoming, outgoing) as opened,
    ):
        await opened.initialize()
        yield opened


def _spreading(ports: Iterator[int]) -> Any:
    async def redirect(request: httpx2.Request) -> None:
        request.url = request.url.copy_with(port=next(ports))

    return redirect


def content_of(result: CallToolResult) -> Any:
    (block,) = result.content
    assert isinstance(block, TextContent)
    content = json.loads(block.text)
    assert result.structured_content == content
    assert not result.is_error or set(content["error"]) >= {"type", "code", "message"}
    return content


def error_code(result: CallToolResult) -> str:
    assert result.is_error, result
    return str(content_of(result)["error"]["code"])


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return message("tools/call", name=name, arguments=arguments)


def send(
    gateway: Gateway, content: Any, changed: Mapping[str, str | None] | None = None, *, port: int | None = None
) -> httpx2.Response:
    given: dict[str, str | None] = {**headers_of(gateway), "content-type": "application/json", "accept": ACCEPT}
    headers = {name: value for name, value in {**given, **(changed or {})}.items() if value is not None}
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return gateway.service.client.post(gateway.service.base_url(port) + PATH, content=body, headers=headers)
