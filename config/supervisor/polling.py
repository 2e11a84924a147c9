"""Waiting for a condition of another process, which can only be asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

_PAUSE_SECONDS = 0.02


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Ends when the condition holds or the caller is cancelled."""
    while not await condition():
        await asyncio.sleep(_PAUSE_SECONDS)


async def port_written(file: Path) -> int:
    """The port in a `--port-file`."""
    while True:
        text = file.read_text(encoding="ascii").strip() if file.exists() else ""
        if text.isdigit():
            return int(text)
        await asyncio.sleep(_PAUSE_SECONDS)
