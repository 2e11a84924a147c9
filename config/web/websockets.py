"""Answers WebSocket handshakes. Nothing here serves WebSockets; a client that tries one first, as Codex does, continues
over HTTP at once after a 426 (Upgrade Required)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.urls import is_valid_path
from django.urls.resolvers import URLPattern

from config.web.handshake import DENIAL, denial_of
from config.web.refusals import WebSocketError
from core.errors import ApplicationError, NotFoundError
from gateway.consumers import UnknownPath
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import Receive, Scope, Send
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.reply import reply_of

logger = logging.getLogger("config.web")

_TEXT = "There are no WebSockets here; streams are server-sent events over HTTP"


class NoWebSockets:
    """Refuses every handshake with an error in the form of its path's protocol: 426 for a path of `routes` or of
    Django, else 404. A server without the extension, such as daphne, answers 403 by itself."""

    def __init__(self, routes: Sequence[URLPattern]) -> None:
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        if DENIAL not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close"})
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        consumer = self._consumer(path)
        error = self._error(scope, path, consumer)
        client = (scope.get("client") or ("",))[0]
        logger.warning("request.refused status=%d code=%s client=%s", error.status, error.code, client)
        await reply_of(getattr(consumer, "surface", CHAT))(denial_of(send), new_request_id()).error(error)

    def _consumer(self, path: str) -> Any:
        matches = (route.resolve(path.lstrip("/")) for route in self._routes)
        return next((match.func for match in matches if match is not None), None)

    def _error(self, scope: Scope, path: str, consumer: Any) -> ApplicationError:
        exists = is_valid_path(path) if consumer is None else not isinstance(consumer, UnknownPath)
        if not exists:
            return NotFoundError(f"There is nothing at {path}")
        # The answer names the protocols that would be taken (RFC 9110, section 15.5.22). HTTP/2 has no such headers.
        named = {"upgrade": "HTTP/1.1", "connection": "upgrade"}
        return WebSocketError(_TEXT, headers=named if scope.get("http_version", "1.1").startswith("1") else None)
