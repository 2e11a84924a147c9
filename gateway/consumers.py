from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

from django.conf import settings

from analytics.telemetry.operation_names import ROOT, operation_names
from core.errors import ApplicationError, NotFoundError
from gateway.errors import MethodNotAllowedError, require_method
from gateway.http.consumer import SharedConsumer
from gateway.model_list.answers import ModelForm, model_answer, models_answer
from gateway.pipeline.authenticate import authenticate
from gateway.pipeline.candidates import allowed_names, candidates_of
from gateway.pipeline.plan.begin import OPERATIONS, SENDER, begin
from gateway.pipeline.run import Sender, run
from gateway.protocol.arrived import ArrivedRequest
from gateway.protocol.headers import read_headers
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import RESPONSE_WRITER, Receive, Reply, Scope, Send
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.completions.surface import SURFACE as COMPLETIONS
from gateway.surfaces.gemini.address import METHODS, refuse_key, surface_at, surface_at_url
from gateway.surfaces.gemini.reply import GeminiArrayReply, GeminiReply
from gateway.surfaces.gemini.surface import SURFACE as GEMINI
from gateway.surfaces.messages.surface import COUNT_TOKENS
from gateway.surfaces.messages.surface import SURFACE as MESSAGES
from gateway.surfaces.operations import EMBEDDINGS, IMAGES, MODERATIONS, RERANK, SPEECH, TRANSCRIPTIONS
from gateway.surfaces.reply import reply_of
from gateway.surfaces.responses.surface import SURFACE as RESPONSES
from gateway.worker.current import current_runtime

_NO_EXTENSIONS: dict[str, Any] = {}
_ANTHROPIC_VERSION = b"anthropic-version"
_GOOGLES_KEY = b"x-goog-api-key"


class SurfaceConsumer(SharedConsumer):
    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self.begins = settings.GATEWAY_PLANS and surface.operation in OPERATIONS
        """Whether the web worker calls `begin` for a request that has arrived whole, before it starts a task."""
        self.path = operation_names(surface.operation).route.removeprefix(ROOT)
        self._reply = reply_of(surface)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        reply = self._reply(send, new_request_id())
        reply.writer = scope.get("extensions", _NO_EXTENSIONS).get(RESPONSE_WRITER)
        if scope["method"] != "POST":
            return reply.error(MethodNotAllowedError("Use POST", headers={"allow": "POST"}))
        known = scope.get(SENDER)
        reply.sender = None if known is None else Sender(*known)
        return run(current_runtime(), scope["headers"], receive, reply)

    def begin(self, request: ArrivedRequest) -> bool:
        return begin(current_runtime(), self.surface, request)


_IN_ORDER: Final[tuple[Surface, ...]] = (
    CHAT,
    RESPONSES,
    MESSAGES,
    COUNT_TOKENS,
    COMPLETIONS,
    EMBEDDINGS,
    MODERATIONS,
    RERANK,
    IMAGES,
    SPEECH,
    TRANSCRIPTIONS,
)
SURFACES: Final = tuple(map(SurfaceConsumer, _IN_ORDER))
"""The consumers of all client protocols, from which the routes are made; the busiest come first."""


class GeminiConsumer(SharedConsumer):
    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        request_id = new_request_id()
        try:
            query = scope.get("query_string")
            if query is None:  # The server has handed over the URL as it came (`config.web.direct`).
                surface = surface_at_url(scope["path"])
            else:
                surface = surface_at(scope["path"], query.decode("latin-1"))
        except ApplicationError as error:
            return GeminiReply(GEMINI, send, request_id).error(error)
        reply = (GeminiArrayReply if surface.as_array else GeminiReply)(surface, send, request_id)
        reply.writer = scope.get("extensions", _NO_EXTENSIONS).get(RESPONSE_WRITER)
        if scope["method"] != "POST":
            return reply.error(MethodNotAllowedError("Use POST", headers={"allow": "POST"}))
        return run(current_runtime(), scope["headers"], receive, reply)


GEMINI_CONSUMER: Final = GeminiConsumer()


class StoredResponse(SharedConsumer):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error: ApplicationError = NotFoundError(
            "The gateway keeps no responses: it forwards them, and each is read once"
        )
        try:
            await authenticate(current_runtime().snapshots, read_headers(scope["headers"]))
        except ApplicationError as refused:
            error = refused
        await _refuse(send, error)


class Models(SharedConsumer):
    """GET /api/gateway/v1/models and /api/gateway/v1/models/{id}, in the form of the client's protocol.

    Headers identify Anthropic's and Google's clients; Google's versions of the address are always in Google's form.
    """

    def __init__(self, form: ModelForm | None = None) -> None:
        self._form = form

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        form = self._form or _form_for(scope["headers"])
        reply = reply_of(_SURFACES_OF_FORMS[form])(send, new_request_id())
        reply.is_native = True
        name = scope["url_route"]["kwargs"].get("model")
        try:
            if scope["method"] == "POST" and name is not None and ":" in name:
                raise _unknown_method(name)
            require_method(scope["method"], "GET")
            refuse_key(parse_qs(scope.get("query_string", b"").decode("latin-1")))
            snapshot, key = await authenticate(current_runtime().snapshots, read_headers(scope["headers"]))
            if name is None:
                answer = await models_answer(snapshot, key, form=form)
            else:
                called = next(iter(candidates_of(snapshot, name, allowed_names(snapshot, None, ()))), None)
                answer = await model_answer(snapshot, key, name, form=form, called=called)
        except ApplicationError as error:
            await reply.error(error)
            return
        await reply.whole(200, answer, [])


def _unknown_method(name: str) -> NotFoundError:
    known = ", ".join(METHODS)
    return NotFoundError(f"The gateway has no method {name.rpartition(':')[2]!r} of models; it has {known}")


def _form_for(headers: Sequence[tuple[bytes, bytes]]) -> ModelForm:
    for name, _ in headers:
        if name == _ANTHROPIC_VERSION:
            return "anthropic"
        if name == _GOOGLES_KEY:
            return "gemini"
    return "openai"


_SURFACES_OF_FORMS: Final[Mapping[ModelForm, Surface]] = {"openai": CHAT, "anthropic": MESSAGES, "gemini": GEMINI}


class BaseAddress(SharedConsumer):
    """GET /api/gateway, the base address of Anthropic's clients. Claude Code checks it with HEAD."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = Reply(send, new_request_id())
        try:
            require_method(scope["method"], "GET")
        except ApplicationError as error:
            await reply.error(error)
            return
        await reply.json({"status": "ok"})


class UnknownPath(SharedConsumer):
    """All other paths below /api/gateway/. `surface` is the error's form; if None, the headers tell it."""

    def __init__(self, surface: Surface | None = None) -> None:
        self._surface = surface

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        surface = self._surface or _SURFACES_OF_FORMS[_form_for(scope["headers"])]
        await reply_of(surface)(send, new_request_id()).error(NotFoundError(f"The gateway has no {scope['path']}"))


class Health(SharedConsumer):
    """GET /healthz: answers while this worker's event loop runs and its spool is open, without any other service."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        runtime = current_runtime()
        await Reply(send, new_request_id()).json({"status": "ok", "in_flight": len(runtime.inflight)})


async def _refuse(send: Send, error: ApplicationError) -> None:
    await Reply(send, new_request_id()).error(error)
