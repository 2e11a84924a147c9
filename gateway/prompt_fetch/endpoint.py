"""The calls by which applications fetch prompts, as Channels consumers past Django.

A worker that knows the key answers from its snapshot, without I/O, even while all stores are down.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from django.conf import settings

from core.api.admission import Admission, with_session
from core.errors import ApplicationError
from core.http.exception_handler import ProtocolError, error_body, error_headers, log_unexpected, translate
from core.processes.database_threads import in_database_thread
from core.rights.asking import scopes_of_operation
from core.tenancy import require_same_project
from gateway.errors import require_method
from gateway.http.bodies import read_body
from gateway.http.consumer import SharedConsumer
from gateway.pipeline.authenticate import authenticate
from gateway.pipeline.parse import ClientGoneError, late_body
from gateway.prompt_fetch import query as queries
from gateway.prompt_fetch.answer import PromptAnswer, prompt_answer
from gateway.prompt_fetch.query import PromptQuery
from gateway.protocol.headers import read_headers
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import HeaderList, Receive, Reply, Scope, Send
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.worker.current import current_runtime

SCOPES = frozenset(scopes_of_operation("getPrompt"))
_UNEXPECTED = "The service failed unexpectedly."


class _Reading(Admission):
    operation_id = "getPrompt"


def project_of_session(scope: dict[str, Any]) -> UUID:
    """Returns the project that the header names, if the person may read it.

    Raises the exceptions that `core.http.exception_handler.translate` knows.
    """
    # The body is read elsewhere: here it has no bytes.
    reading = _Reading()
    reading.admit(with_session(scope))
    return reading.project_id


class _ManagementReply(Reply):
    def encoded_error(self, error: ApplicationError) -> bytes:
        return json.dumps(error_body(error)).encode()


class Prompt(SharedConsumer):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _fetch(scope, send, scope["url_route"]["kwargs"].get("name"), allow="GET")


class RenderedPrompt(SharedConsumer):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["url_route"]["kwargs"]["name"]
        if scope["method"] != "POST":
            # The name of a prompt may end like this path.
            await _fetch(scope, send, f"{name}/render", allow="GET, POST")
            return

        async def read() -> PromptQuery:
            try:
                async with asyncio.timeout(settings.GATEWAY_BODY_SECONDS):
                    body = await read_body(scope, receive, settings.MANAGEMENT_BODY_BYTES)
            except TimeoutError:
                raise late_body() from None
            return queries.read_body(body, name)

        await _serve(scope, send, "POST", read, "GET, POST")


async def _fetch(scope: Scope, send: Send, name: str | None, *, allow: str) -> None:
    async def read() -> PromptQuery:
        return queries.read_query(scope["query_string"], name)

    await _serve(scope, send, "GET", read, allow)


async def _serve(scope: Scope, send: Send, method: str, read: Callable[[], Awaitable[PromptQuery]], allow: str) -> None:
    reply, runtime = _ManagementReply(send, new_request_id()), current_runtime()
    try:
        require_method(scope["method"], method, allow)
        snapshot = await _admitted(runtime, scope)
        query = await read()
        if query.project_id:
            require_same_project(snapshot.project_id, query.project_id)
        answer = await prompt_answer(runtime.snapshots, snapshot, query, reply.request_id)
    except ClientGoneError:
        return
    except Exception as error:
        await _refuse(reply, error)
        return
    headers: HeaderList = [(b"etag", answer.etag), (b"cache-control", answer.cache_control)]
    if method == "GET" and _is_known(scope, answer):
        await send({"type": "http.response.start", "status": 304, "headers": [*reply.ids, *headers]})
        await send({"type": "http.response.body", "body": b""})
        return
    await reply.whole(200, answer.body, headers)


async def _admitted(runtime: Runtime, scope: Scope) -> ProjectSnapshot:
    headers = read_headers(scope["headers"])
    if headers.authorization or headers.api_key or not any(name == b"cookie" for name, _ in scope["headers"]):
        snapshot, _ = await authenticate(runtime.snapshots, headers, SCOPES)
        return snapshot
    project_id = await in_database_thread(project_of_session, scope)
    snapshot = await runtime.snapshots.project(project_id)
    runtime.snapshots.note_use(project_id)
    return snapshot


def _is_known(scope: Scope, answer: PromptAnswer) -> bool:
    """Returns whether the client has this answer already (RFC 9110, 13.1.2)."""
    for name, value in scope["headers"]:
        if name == b"if-none-match":
            tags = [tag.strip().removeprefix(b"W/") for tag in value.split(b",")]
            if answer.etag in tags or b"*" in tags:
                return True
    return False


async def _refuse(reply: Reply, error: Exception) -> None:
    known = translate(error)
    if known is None:
        log_unexpected(error, reply.request_id)
        known = ApplicationError(_UNEXPECTED)
    status = known.http_status if isinstance(known, ProtocolError) else known.status
    headers = [
        (name.lower().encode(), value.encode("latin-1", "replace"))
        for name, value in error_headers(known, status).items()
    ]
    if status == 408:
        headers.append((b"connection", b"close"))
    await reply.whole(status, reply.encoded_error(known), headers)
