"""Polling for a condition of another process that sends no event."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

_PAUSE_SECONDS = 0.02


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Returns when the condition holds; ends early when the caller is cancelled."""
    while not await condition():  # noqa: ASYNC110 - nothing in this process could set an Event
        await asyncio.sleep(_PAUSE_SECONDS)


async def port_written(file: Path) -> int:
    """Returns the port in a `--port-file`, or None while there is none."""
    while (port := _port_in(file)) is None:  # noqa: ASYNC110 - see above
        await asyncio.sleep(_PAUSE_SECONDS)
    return port


def _port_in(file: Path) -> int | None:
    text = file.read_text(encoding="ascii").strip() if file.exists() else ""
    return int(text) if text.isdigit() else None
