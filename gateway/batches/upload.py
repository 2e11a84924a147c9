"""An upload may have hundreds of megabytes: it is kept on disk, checked there and sent from there.

A form (https://www.rfc-editor.org/rfc/rfc7578) is parsed in place.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import tempfile
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from django.conf import settings

from core.errors import NO_ROOM, BodyTooLargeError, ServiceUnavailableError, ValidationError
from gateway.pipeline.parse import ClientGoneError, refuse_compressed
from gateway.protocol.headers import RequestHeaders
from gateway.protocol.reply import Receive
from integrations.providers.common.multipart import Part, parts_of

# So much is collected before it is written: each write goes to a thread, since disks are slow at times.
_PIECE_BYTES = 1024 * 1024
# A search looks at so much at a time, since it holds the interpreter's lock.
_WINDOW_BYTES = 1024 * 1024
MAX_FIELD_BYTES = 64 * 1024
# The first bytes of a line are looked at by so many, since most lines begin with no blank.
_GLANCE_BYTES = 64
# A full disk is freed by people.
_AGAIN = {"retry-after": "30"}


@contextmanager
def temporary_file() -> Iterator[BinaryIO]:
    """Yields an unnamed file that is gone when closed. Raises ServiceUnavailableError (503) when the disk is full."""
    try:
        with tempfile.TemporaryFile(dir=settings.GATEWAY_FILE_DIR) as file:
            yield file
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        message = "There is no room for the file at the moment; try again"
        raise ServiceUnavailableError(message, headers=_AGAIN) from error


async def receive_into(file: BinaryIO, receive: Receive, headers: RequestHeaders) -> int:
    """Writes the request's body into the file and returns its size.

    Raises BodyTooLargeError (413) above GATEWAY_FILE_BYTES, ValidationError for a compressed body, and ClientGoneError
    when the client leaves.
    """
    refuse_compressed(headers)
    pieces: list[bytes] = []
    size = unwritten = 0
    more = True
    while more:
        message: Any = await receive()
        if message["type"] != "http.request":
            raise ClientGoneError
        piece = message.get("body", b"")
        more = message.get("more_body", False)
        pieces.append(piece)
        size += len(piece)
        unwritten += len(piece)
        if size > settings.GATEWAY_FILE_BYTES:
            raise BodyTooLargeError(settings.GATEWAY_FILE_BYTES)
        if unwritten >= _PIECE_BYTES or not more:
            await asyncio.to_thread(_write, file, pieces)
            pieces, unwritten = [], 0
    return size


def _write(file: BinaryIO, pieces: list[bytes]) -> None:
    file.writelines(pieces)
    file.flush()


class Stored:
    def __init__(self, content: mmap.mmap) -> None:
        self._content = content

    @property
    def raw(self) -> mmap.mmap:
        return self._content

    def __getitem__(self, place: slice) -> bytes:
        return self._content[place]

    def find(self, wanted: bytes, start: int = 0, end: int | None = None) -> int:
        end = len(self._content) if end is None else min(end, len(self._content))
        while start < end:
            stop = min(start + _WINDOW_BYTES + len(wanted), end)
            found = self._content.find(wanted, start, stop)
            if found >= 0:
                return found
            start += _WINDOW_BYTES
        return -1

    def lines(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yields the lines that are not blank, with their numbers and without line breaks.

        A line over `GATEWAY_BODY_BYTES` is cut one byte after that limit.
        """
        most = settings.GATEWAY_BODY_BYTES + 1
        number = 1
        while True:
            start, breaks = self._behind_blanks(start, end)
            if start >= end:
                return
            number += breaks
            stop = self.find(b"\n", start, end)
            stop = end if stop < 0 else stop
            yield number, self._content[start : min(stop, start + most)].removesuffix(b"\r")
            start, number = stop + 1, number + 1

    def _behind_blanks(self, start: int, end: int) -> tuple[int, int]:
        breaks, glance = 0, _GLANCE_BYTES
        while start < end:
            window = self._content[start : min(start + glance, end)]
            blank = len(window) - len(window.lstrip())
            breaks += window.count(b"\n", 0, blank)
            start += blank
            if blank < len(window):
                break
            glance = _WINDOW_BYTES
        return start, breaks


def mapped(file: BinaryIO, size: int) -> Stored:
    """The file must not be empty. It is unmapped with the last view of it."""
    return Stored(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))


def blank_mark(file: BinaryIO, content: Stored, start: int) -> None:
    """Overwrites a byte order mark with blanks, since no vendor's JSON begins with one."""
    if content[start : start + len(BOM_UTF8)] == BOM_UTF8:
        file.seek(start)
        _write(file, [b" " * len(BOM_UTF8)])


def reader_of(file: BinaryIO) -> BinaryIO:
    """Returns a second reader of the file for a transport, which may close it at any time."""
    file.seek(0)
    return os.fdopen(os.dup(file.fileno()), "rb")


def not_a_form(problem: str) -> ValidationError:
    return ValidationError(f"The request body has to be a form (multipart/form-data): {problem}")


class Form:
    def __init__(self, content: Stored) -> None:
        try:
            self._parts = {part.name: part for part in parts_of(content)}
        except ValueError as problem:
            raise not_a_form(str(problem)) from None
        self._content = content

    @property
    def file(self) -> Part:
        part = self._parts.get("file")
        if part is None or part.filename is None:
            raise ValidationError("file: this field is required", code="missing_field")
        return part

    def text(self, name: str) -> str:
        part = self._parts.get(name)
        if part is None:
            raise ValidationError(f"{name}: this field is required", code="missing_field")
        return self._content[part.start : min(part.end, part.start + MAX_FIELD_BYTES)].decode("utf-8", "replace")
