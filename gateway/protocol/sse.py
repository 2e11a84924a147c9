"""Server-sent events as the gateway frames them (specification, gateway stream)."""

from __future__ import annotations

from collections.abc import Iterable

from integrations.providers.base import StreamEvent

DONE = b"data: [DONE]\n\n"
# A comment line: ignored by every SSE parser, it keeps proxies and clients from giving up on a silent stream.
HEARTBEAT = b": keep-alive\n\n"


def frame(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def frame_all(events: Iterable[StreamEvent]) -> bytes:
    return b"".join([b"data: " + event.data + b"\n\n" for event in events])
