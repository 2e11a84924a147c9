from __future__ import annotations

import asyncio

from prometheus_client import CONTENT_TYPE_LATEST

from config.monitor.exposition import render
from core.errors import ApplicationError
from core.rights.asking import scopes_of_operation
from gateway.errors import require_method
from gateway.http.consumer import SharedConsumer
from gateway.pipeline.authenticate import authenticate
from gateway.protocol.headers import read_headers
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import Receive, Reply, Scope, Send
from gateway.worker.current import current_runtime

_SCOPES = frozenset(scopes_of_operation("prometheusMetrics"))


class Metrics(SharedConsumer):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = Reply(send, new_request_id())
        try:
            require_method(scope["method"], "GET")
            snapshots, headers = current_runtime().snapshots, read_headers(scope["headers"])
            snapshot, _ = await authenticate(snapshots, headers, _SCOPES)
        except ApplicationError as error:
            await reply.error(error)
            return
        # Rendering takes some ten milliseconds of CPU time, so a thread does it and streams are not delayed.
        body = await asyncio.to_thread(render, snapshot.id_text)
        await reply.whole(200, body, [(b"cache-control", b"no-store")], (b"content-type", CONTENT_TYPE_LATEST.encode()))
