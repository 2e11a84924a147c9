"""Reads bodies of management calls that are served without Django, by the rules of those that it serves."""

from __future__ import annotations

from typing import Any

from core.errors import BodyTooLargeError
from core.http.bodies import refuse_coding
from gateway.pipeline.parse import ClientGoneError
from gateway.protocol.headers import read_headers
from gateway.protocol.reply import Receive


async def read_body(scope: dict[str, Any], receive: Receive, limit: int) -> bytes:
    """Raises BodyTooLargeError above `limit` bytes, CompressedBodyError, and ClientGoneError."""
    refuse_coding(read_headers(scope["headers"]).content_encoding)
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGoneError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise BodyTooLargeError(limit)
        more = message.get("more_body", False)
    return b"".join(parts)
