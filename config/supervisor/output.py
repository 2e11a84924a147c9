"""Forwards the child processes' output to standard error, each line behind the name of the child."""

from __future__ import annotations

import asyncio
import sys

_READ_BYTES = 65536


async def forward_lines(stream: asyncio.StreamReader, role: str) -> None:
    """Copies lines until the end of `stream`. Lines may have any length; the last one need not end in a newline."""
    prefix = f"{role:<9}| ".encode()
    rest = b""
    while data := await stream.read(_READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        _write(b"".join(prefix + line + b"\n" for line in lines))
    if rest:
        _write(prefix + rest + b"\n")


def _write(text: bytes) -> None:
    try:
        sys.stderr.buffer.write(text)
        sys.stderr.buffer.flush()
    except (OSError, ValueError):
        # The reader of the log is gone, or the log's disk is full. The pipe is still emptied, so that no child blocks.
        return
