"""GET /metrics on the main port: a key gets the figures of its own project."""

from __future__ import annotations

import asyncio
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from config.monitor.exposition import render
from core.errors import ApplicationError
from core.scopes import MANAGE, METRICS_READ
from gateway.errors import MethodNotAllowedError
from gateway.pipeline.authenticate import authenticate
from gateway.protocol.headers import read_headers
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import Receive, Reply, Send
from gateway.worker import current_runtime

_SCOPES = frozenset({METRICS_READ, MANAGE})


async def metrics(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Answers from what the host's processes reported last; only the key may have to be looked up."""
    try:
        if scope["method"] != "GET":
            raise MethodNotAllowedError("Use GET", headers={"allow": "GET"})
        snapshots, headers = current_runtime().snapshots, read_headers(scope["headers"])
        snapshot, _ = await authenticate(snapshots, headers, _SCOPES)
    except ApplicationError as error:
        await Reply(send, new_request_id()).error(error)
        return
    # Rendering takes some ten milliseconds of CPU time, so a thread does it and streams are not delayed.
    body = await asyncio.to_thread(render, snapshot.id_text)
    fields = [
        (b"content-type", CONTENT_TYPE_LATEST.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})
