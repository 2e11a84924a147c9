"""The gateway's endpoints as plain ASGI callables that Channels routes to.

The stock consumer of Channels costs more than the whole pipeline (a channel-layer listener and a task for each
message), and no endpoint of the gateway needs a channel layer.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from core.errors import ApplicationError, NotFoundError
from gateway.errors import MethodNotAllowedError, require_method
from gateway.model_list.answers import model_answer, models_answer
from gateway.pipeline.authenticate import authenticate
from gateway.pipeline.run import run
from gateway.protocol.headers import read_headers
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import RESPONSE_WRITER, Receive, Reply, Scope, Send
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.completions.surface import SURFACE as COMPLETIONS
from gateway.surfaces.embeddings.surface import SURFACE as EMBEDDINGS
from gateway.surfaces.images.surface import SURFACE as IMAGES
from gateway.surfaces.messages.surface import COUNT_TOKENS
from gateway.surfaces.messages.surface import SURFACE as MESSAGES
from gateway.surfaces.moderations.surface import SURFACE as MODERATIONS
from gateway.surfaces.reply import reply_of
from gateway.surfaces.rerank.surface import SURFACE as RERANK
from gateway.surfaces.responses.surface import SURFACE as RESPONSES
from gateway.surfaces.speech.surface import SURFACE as SPEECH
from gateway.surfaces.transcriptions.surface import SURFACE as TRANSCRIPTIONS
from gateway.worker.current import current_runtime

_NO_EXTENSIONS: dict[str, Any] = {}
_ANTHROPIC_VERSION = b"anthropic-version"


class SurfaceEndpoint:
    """POST of one client protocol, as an ASGI application."""

    def __init__(self, surface: Surface) -> None:
        self._reply = reply_of(surface)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        reply = self._reply(send, new_request_id())
        reply.writer = scope.get("extensions", _NO_EXTENSIONS).get(RESPONSE_WRITER)
        if scope["method"] != "POST":
            return reply.error(MethodNotAllowedError("Use POST", headers={"allow": "POST"}))
        return run(current_runtime(), scope["headers"], receive, reply)


chat_completions = SurfaceEndpoint(CHAT)
"""POST /api/gateway/v1/chat/completions"""
responses = SurfaceEndpoint(RESPONSES)
"""POST /api/gateway/v1/responses"""
messages = SurfaceEndpoint(MESSAGES)
"""POST /api/gateway/v1/messages"""
count_tokens = SurfaceEndpoint(COUNT_TOKENS)
"""POST /api/gateway/v1/messages/count_tokens"""
completions = SurfaceEndpoint(COMPLETIONS)
"""POST /api/gateway/v1/completions"""
transcriptions = SurfaceEndpoint(TRANSCRIPTIONS)
"""POST /api/gateway/v1/audio/transcriptions"""
moderations = SurfaceEndpoint(MODERATIONS)
"""POST /api/gateway/v1/moderations"""
rerank = SurfaceEndpoint(RERANK)
"""POST /api/gateway/v1/rerank"""
images = SurfaceEndpoint(IMAGES)
"""POST /api/gateway/v1/images/generations"""
speech = SurfaceEndpoint(SPEECH)
"""POST /api/gateway/v1/audio/speech"""
embeddings = SurfaceEndpoint(EMBEDDINGS)
"""POST /api/gateway/v1/embeddings"""


async def stored_response(scope: Scope, receive: Receive, send: Send) -> None:
    """GET and DELETE /api/gateway/v1/responses/{id}"""
    await _refuse(send, NotFoundError("The gateway keeps no responses: it forwards them, and each is read once"))


async def models(scope: Scope, receive: Receive, send: Send) -> None:
    """GET /api/gateway/v1/models and /api/gateway/v1/models/{id}, in Anthropic's form for Anthropic's clients."""
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


async def unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    await _refuse(send, NotFoundError(f"The gateway has no {scope['path']}"))


async def health(scope: Scope, receive: Receive, send: Send) -> None:
    """GET /healthz: answers while this worker's event loop runs and its spool is open, and depends on no other
    service."""
    runtime = current_runtime()
    await Reply(send, new_request_id()).json({"status": "ok", "in_flight": len(runtime.inflight)})


async def _refuse(send: Send, error: ApplicationError) -> None:
    await Reply(send, new_request_id()).error(error)
