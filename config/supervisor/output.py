from __future__ import annotations

import asyncio
import sys

from config import json_log

_READ_BYTES = 65536


async def forward_lines(stream: asyncio.StreamReader, role: str) -> None:
    rest = b""
    while data := await stream.read(_READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        _write(b"".join(_forwarded(line, role) for line in lines))
    if rest:
        _write(_forwarded(rest, role))


def _forwarded(line: bytes, role: str) -> bytes:
    if not json_log.IS_ON:
        return f"{role:<9}| ".encode() + line + b"\n"
    text = line.decode(errors="backslashreplace")
    return f"{json_log.as_json(text, role)}\n".encode() if text.strip() else b""


def _write(text: bytes) -> None:
    try:
        sys.stderr.buffer.write(text)
        sys.stderr.buffer.flush()
    except (OSError, ValueError):
        # The reader of the log is gone, or the log's disk is full. The pipe is still emptied, so that no child blocks.
        return
