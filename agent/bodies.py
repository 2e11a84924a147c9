"""Request bodies of the calls that Channels serves without Django."""

from __future__ import annotations

from core.parsers import BodyTooLarge
from gateway.pipeline.parse import ClientGoneError
from gateway.protocol.reply import Receive


async def read_body(receive: Receive, limit: int) -> bytes:
    """Returns the body. Raises BodyTooLarge above `limit` bytes, and ClientGoneError."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGoneError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise BodyTooLarge(f"The body is larger than {limit} bytes.")
        more = message.get("more_body", False)
    return b"".join(parts)
