"""What the monitor of a host found last, as web workers read it."""

from __future__ import annotations

from typing import Any

import msgspec

from core.notices import Notice, NoticeWriter, read_notice
from gateway.observation import HOST, NOTICES_DIR

_MOST_BYTES = 256 * 1024


class HostState(msgspec.Struct):
    """`stores` by name: `up`, `seconds`; `found` by subject, only what was found; `alarms` are those people were told
    of. Both are as of `at`, Unix time in seconds."""

    at: float
    started_at: float
    stores: dict[str, dict[str, Any]] = {}
    found: dict[str, dict[str, Any]] = {}
    ages: dict[str, float] = {}
    alarms: list[str] = []


_decoder = msgspec.json.Decoder(HostState)


def writer() -> NoticeWriter:
    return NoticeWriter(NOTICES_DIR, HOST, most_bytes=_MOST_BYTES)


def read_host() -> HostState | None:
    """None when no monitor of this version runs on the host."""
    notice: Notice | None = read_notice(NOTICES_DIR, HOST)
    if notice is None or not notice.is_alive:
        return None
    try:
        return _decoder.decode(notice.message)
    except msgspec.DecodeError:
        return None
