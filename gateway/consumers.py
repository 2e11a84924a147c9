"""The gateway's endpoints as Channels consumers, one class for each client protocol and for each other path."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final

from typing_extensions import override

from analytics.telemetry.operation_names import ROOT, operation_names
from core.errors import ApplicationError, NotFoundError
from gateway.errors import MethodNotAllowedError, require_method
from gateway.http.consumer import SharedConsumer
from gateway.model_list.answers import model_answer, models_answer
from gateway.pipeline.authenticate import authenticate
from gateway.pipeline.run import run
from gateway.protocol.headers import read_headers
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import RESPONSE_WRITER, Receive, Reply, Scope, Send
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.completions.surface import SURFACE as COMPLETIONS
from gateway.surfaces.messages.surface import COUNT_TOKENS
from gateway.surfaces.messages.surface import SURFACE as MESSAGES
from gateway.surfaces.native_only import NativeOnlySurface
from gateway.surfaces.operations import embeddings, images, moderations, rerank, speech, transcriptions
from gateway.surfaces.reply import reply_of
from gateway.surfaces.responses.surface import SURFACE as RESPONSES
from gateway.worker.current import current_runtime

_NO_EXTENSIONS: dict[str, Any] = {}
_ANTHROPIC_VERSION = b"anthropic-version"


class SurfaceConsumer(SharedConsumer):
    """POST of one client protocol. `path` is its path below the address of the gateway."""

    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self.path = operation_names(surface.operation).route.removeprefix(ROOT)
        self._reply = reply_of(surface)

    @override
    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        reply = self._reply(send, new_request_id())
        reply.writer = scope.get("extensions", _NO_EXTENSIONS).get(RESPONSE_WRITER)
        if scope["method"] != "POST":
            return reply.error(MethodNotAllowedError("Use POST", headers={"allow": "POST"}))
        return run(current_runtime(), scope["headers"], receive, reply)


_IN_ORDER: Final[tuple[Surface, ...]] = (
    CHAT,
    RESPONSES,
    MESSAGES,
    COUNT_TOKENS,
    COMPLETIONS,
    NativeOnlySurface("embeddings", embeddings.read),
    NativeOnlySurface("moderations", moderations.read),
    NativeOnlySurface("rerank", rerank.read),
    NativeOnlySurface("images", images.read),
    NativeOnlySurface("speech", speech.read),
    NativeOnlySurface("transcriptions", transcriptions.read),
)
SURFACES: Final = tuple(map(SurfaceConsumer, _IN_ORDER))
"""The consumers of all client protocols, from which the routes are made; the busiest come first."""


class StoredResponse(SharedConsumer):
    """GET and DELETE /api/gateway/v1/responses/{id}"""

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _refuse(send, NotFoundError("The gateway keeps no responses: it forwards them, and each is read once"))


class Models(SharedConsumer):
    """GET /api/gateway/v1/models and /api/gateway/v1/models/{id}, in Anthropic's form for Anthropic's clients."""

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        anthropic = any(name == _ANTHROPIC_VERSION for name, _ in scope["headers"])
        reply = reply_of(MESSAGES if anthropic else CHAT)(send, new_request_id())
        reply.is_native = True
        name = scope["url_route"]["kwargs"].get("model")
        try:
            require_method(scope["method"], "GET")
            snapshot, key = await authenticate(current_runtime().snapshots, read_headers(scope["headers"]))
            if name is None:
                answer = await models_answer(snapshot, key, anthropic=anthropic)
            else:
                answer = await model_answer(snapshot, key, name, anthropic=anthropic)
        except ApplicationError as error:
            await reply.error(error)
            return
        await reply.whole(200, answer, [])


class BaseAddress(SharedConsumer):
    """GET /api/gateway, the base address of Anthropic's clients. Claude Code asks by HEAD whether it is there."""

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = Reply(send, new_request_id())
        try:
            require_method(scope["method"], "GET")
        except ApplicationError as error:
            await reply.error(error)
            return
        await reply.json({"status": "ok"})


class UnknownPath(SharedConsumer):
    """All paths below /api/gateway/ that no other consumer has."""

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _refuse(send, NotFoundError(f"The gateway has no {scope['path']}"))


class Health(SharedConsumer):
    """GET /healthz: answers while this worker's event loop runs and its spool is open, and depends on no other
    service."""

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        runtime = current_runtime()
        await Reply(send, new_request_id()).json({"status": "ok", "in_flight": len(runtime.inflight)})


async def _refuse(send: Send, error: ApplicationError) -> None:
    await Reply(send, new_request_id()).error(error)
