"""Cross-origin requests of browsers (https://fetch.spec.whatwg.org/#http-cors-protocol).

They may call the gateway, and the one management call that a key in a web page can make: feedback on a session. The
gateway's paths bypass Django's middleware, so django-cors-headers would not see them. Cookies and other credentials of
the browser are never allowed: the gateway accepts only keys.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from gateway.protocol import headers
from gateway.protocol.reply import RESPONSE_WRITER, HeaderList, Message, Receive, ResponseWriter, Send

Application = Callable[[Any, Receive, Send], Awaitable[None]]

ANY_ORIGIN = "*"
_GATEWAY_PATHS = "/api/gateway/"
_FEEDBACK_PATH = re.compile("/api/llm/sessions/.+/feedback", re.DOTALL)
_MAX_AGE_SECONDS = 600
_GATEWAY_METHODS, _FEEDBACK_METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS"), ("POST", "OPTIONS")
# The names of the variables of prompts are part of header names, so that a list of allowed names cannot be given ahead.
_HEADER_NAMES = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:[ \t]*,[ \t]*[!#$%&'*+.^_`|~0-9A-Za-z-]+)*")
_MAX_HEADER_NAMES_BYTES = 4096
_EXPOSED = b", ".join(
    (
        headers.REQUEST_ID,
        headers.ECHOED_REQUEST_ID,
        headers.PROVIDER,
        headers.DEPLOYMENT,
        headers.MODEL_USED,
        headers.ORIGINAL_MODEL,
        headers.FALLBACK_USED,
        headers.RETRY_COUNT,
        headers.PROMPT_VERSION,
        headers.VARIANT,
        headers.CACHE,
        headers.WARNING,
        headers.CONTRACT_VIOLATION,
        *headers.RATE_LIMIT_REQUESTS,
        *headers.RATE_LIMIT_TOKENS,
        b"retry-after",
        b"x-should-retry",
    )
)


def with_cors(application: Application, origins: Collection[str]) -> Application:
    allowed = frozenset(origin.lower().encode() for origin in origins)

    async def allowing(scope: Any, receive: Receive, send: Send) -> None:
        methods = _methods(scope["path"]) if scope["type"] == "http" else ()
        if not methods or scope["method"] not in methods:
            await application(scope, receive, send)
            return
        sent = dict(scope["headers"])
        origin = sent.get(b"origin", b"")
        if not origin or (origin.lower() not in allowed and ANY_ORIGIN.encode() not in allowed):
            await application(scope, receive, send)
            return
        permission = (b"access-control-allow-origin", origin)
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in sent:
            await _answer_preflight(send, permission, methods, sent.get(b"access-control-request-headers", b""))
        else:
            added: HeaderList = [permission, (b"access-control-expose-headers", _EXPOSED), (b"vary", b"origin")]
            await application(_exposing_scope(scope, added), receive, _exposing(send, added))

    return allowing


def _methods(path: str) -> Sequence[str]:
    if path.startswith(_GATEWAY_PATHS):
        return _GATEWAY_METHODS
    return _FEEDBACK_METHODS if _FEEDBACK_PATH.fullmatch(path) else ()


async def _answer_preflight(send: Send, permission: tuple[bytes, bytes], methods: Sequence[str], names: bytes) -> None:
    found: HeaderList = [
        permission,
        (b"access-control-allow-methods", ", ".join(methods).encode()),
        (b"access-control-max-age", b"%d" % _MAX_AGE_SECONDS),
        (b"vary", b"origin, access-control-request-headers"),
        (b"content-length", b"0"),
    ]
    names = names.strip()
    if len(names) <= _MAX_HEADER_NAMES_BYTES and _HEADER_NAMES.fullmatch(names):
        found.append((b"access-control-allow-headers", names))
    await send({"type": "http.response.start", "status": 204, "headers": found})
    await send({"type": "http.response.body", "body": b""})


def _exposing(send: Send, added: HeaderList) -> Send:
    async def exposing(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return exposing


def _exposing_scope(scope: Any, added: HeaderList) -> Any:
    extensions = scope.get("extensions") or {}
    if RESPONSE_WRITER not in extensions:
        return scope
    writer = _ExposingWriter(extensions[RESPONSE_WRITER], added)
    return {**scope, "extensions": {**extensions, RESPONSE_WRITER: writer}}


class _ExposingWriter:
    """Adds headers to whole responses; those of a stream have left before its first piece."""

    __slots__ = ("_added", "_writer")

    def __init__(self, writer: ResponseWriter, added: HeaderList) -> None:
        self._writer, self._added = writer, added

    @property
    def takes_pieces(self) -> bool:
        return self._writer.takes_pieces

    def write_piece(self, data: bytes) -> bool:
        return self._writer.write_piece(data)

    def write_whole(self, status: int, headers: HeaderList, body: bytes) -> bool:
        return self._writer.write_whole(status, [*headers, *self._added], body)
