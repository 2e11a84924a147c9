"""The host state: the monitor's latest findings, in a file that web workers read."""

from __future__ import annotations

from typing import Any

import msgspec

from core.processes.notices import Notice, NoticeWriter, notices_dir, read_notice
from gateway.worker.state import HOST

_MAX_BYTES = 256 * 1024


class HostState(msgspec.Struct):
    """The findings of the monitor at `at`, Unix time in seconds. `stores` maps names to `up` and `seconds`, `found`
    maps subjects to their reports, and `alarms` lists those that operators were notified of."""

    at: float
    started_at: float
    stores: dict[str, dict[str, Any]] = {}
    found: dict[str, dict[str, Any]] = {}
    ages: dict[str, float] = {}
    alarms: list[str] = []


_decoder = msgspec.json.Decoder(HostState)


def writer() -> NoticeWriter:
    return NoticeWriter(notices_dir(), HOST, max_bytes=_MAX_BYTES)


def read_host() -> HostState | None:
    """Returns None if no monitor of this version runs on the host."""
    notice: Notice | None = read_notice(notices_dir(), HOST)
    if notice is None or not notice.is_alive:
        return None
    try:
        return _decoder.decode(notice.message)
    except msgspec.DecodeError:
        return None
