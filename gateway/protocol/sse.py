"""Server-sent events as the gateway frames them (docs/chat-completions.md#streams)."""

from __future__ import annotations

from collections.abc import Sequence

from integrations.providers.base import StreamEvent

DONE = b"data: [DONE]\n\n"
# The heartbeat is a comment line: every SSE parser ignores it, and proxies and clients keep a silent stream open.
HEARTBEAT = b": keep-alive\n\n"


def frame(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def data_of(frames: bytes) -> list[bytes]:
    return [block[6:] for block in frames.split(b"\n\n") if block.startswith(b"data: ")]


def relay_all(events: Sequence[StreamEvent]) -> bytes:
    if len(events) == 1:
        return events[0].data + b"\n\n"
    return b"".join([event.data + b"\n\n" for event in events])


def frame_all(events: Sequence[StreamEvent]) -> bytes:
    if len(events) == 1:  # Most chunks of a stream come alone.
        return b"data: %b\n\n" % events[0].data
    return b"".join([b"data: " + event.data + b"\n\n" for event in events])
