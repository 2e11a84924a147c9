"""Request bodies of everything that Django serves: read in any framing, bounded, and never compressed.

HTTP/1.1 frames a body by length or in chunks (RFC 9112, section 6). Django's ASGI handler has read both before the
first middleware, but DRF and the form parser go by Content-Length and would take a chunked body for an empty one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from core.errors import CompressedBodyError
from core.http.arrival import Application
from core.http.failures import failure

_NO_CODINGS = frozenset({"", "identity"})


class BodyMiddleware(MiddlewareMixin):
    """Prepares the body for its readers. Comes before the CSRF middleware, which looks for a form's token."""

    def process_view(self, request: HttpRequest, view: Callable[..., Any], *args: Any) -> HttpResponseBase | None:
        note_length(request)
        try:
            if not getattr(view, "reads_compressed", False):
                require_uncompressed(request)
        except CompressedBodyError as error:
            return failure(request, error)
        return None


def note_length(request: HttpRequest) -> None:
    """Sets CONTENT_LENGTH to the bytes that arrived. Keeps the header's length under WSGI and for a body that is not a
    file."""
    if isinstance(request, ASGIRequest) and request._stream.seekable():
        file = request._stream  # Django's own limit measures it in the same way.
        request.META["CONTENT_LENGTH"] = str(file.seek(0, os.SEEK_END))
        file.seek(0)


def require_uncompressed(request: HttpRequest) -> None:
    if request.META.get("CONTENT_LENGTH") not in (None, "", "0"):
        refuse_coding(request.headers.get("Content-Encoding", ""))


def refuse_coding(content_encoding: str) -> None:
    if content_encoding.strip().lower() not in _NO_CODINGS:
        # RFC 9110, section 15.5.16: the answer names the codings that would be taken.
        raise CompressedBodyError(
            f"Content-Encoding: {content_encoding[:40]!a} is not supported here; send the body without compression.",
            headers={"accept-encoding": "identity"},
        )


def with_bounded_body(application: Application, limit: int) -> Application:
    """Reads at most one byte beyond `limit`. Django stores a body before its own limits apply; the extra byte makes
    them refuse it."""

    async def bounded(scope: Any, receive: Any, send: Any) -> None:
        left = limit + 1

        async def receive_bounded() -> Any:
            nonlocal left
            message = await receive()
            while left == 0 and message["type"] == "http.request":
                # The application takes the body for complete, and waits for the client to leave.
                message = await receive()
            if message["type"] != "http.request":
                return message
            body = message.get("body", b"")[:left]
            left -= len(body)
            return {**message, "body": body, "more_body": message.get("more_body", False) and left > 0}

        await application(scope, receive_bounded, send)

    return bounded
