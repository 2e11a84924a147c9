"""The body of an upload, which may have hundreds of megabytes: it is kept on disk while it is checked, and leaves from
there. A form (https://www.rfc-editor.org/rfc/rfc7578) is looked at where it lies."""

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
    """Yields a file without a name, of which nothing is left when it is closed. Raises ServiceUnavailableError (503)
    when the disk is full."""
    try:
        with tempfile.TemporaryFile(dir=settings.GATEWAY_FILE_DIR) as file:
            yield file
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        message = "There is no room for the file at the moment; try again"
        raise ServiceUnavailableError(message, headers=_AGAIN) from error


async def receive_into(file: BinaryIO, receive: Receive, headers: RequestHeaders) -> int:
    """Writes the request's body into the file and returns its size. Raises BodyTooLargeError (413) above
    GATEWAY_FILE_BYTES, ValidationError for a compressed body, and ClientGoneError when the client leaves."""
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
    """The bytes of a file of `size` bytes, looked at without being read into memory: what `parts_of` needs of bytes."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content

    @property
    def raw(self) -> mmap.mmap:
        """The whole content, as a buffer."""
        return self._content

    def __getitem__(self, place: slice) -> bytes:
        return self._content[place]

    def find(self, wanted: bytes, start: int = 0, end: int | None = None) -> int:
        """Returns the first place of `wanted` from `start` on, -1 without one."""
        end = len(self._content) if end is None else min(end, len(self._content))
        while start < end:
            stop = min(start + _WINDOW_BYTES + len(wanted), end)
            found = self._content.find(wanted, start, stop)
            if found >= 0:
                return found
            start += _WINDOW_BYTES
        return -1

    def lines(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yields the lines between two places that are not blank, with their numbers and without line breaks, each of
        at most `GATEWAY_BODY_BYTES`: one that is longer comes cut, with one byte too many."""
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
        """Returns the first place that is not blank, and the line breaks before it: there may be millions."""
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
    """Returns the content of a file, which is not empty. It is unmapped with the last view of it."""
    return Stored(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))


def blank_mark(file: BinaryIO, content: Stored, start: int) -> None:
    """Writes blanks over a byte order mark, with which no vendor's JSON begins."""
    if content[start : start + len(BOM_UTF8)] == BOM_UTF8:
        file.seek(start)
        _write(file, [b" " * len(BOM_UTF8)])


def reader_of(file: BinaryIO) -> BinaryIO:
    """Returns a reader of the whole file for a transport, which closes it when it likes, and the file's owner then does
    not have to wait."""
    file.seek(0)
    return os.fdopen(os.dup(file.fileno()), "rb")


def not_a_form(problem: str) -> ValidationError:
    return ValidationError(f"The request body has to be a form (multipart/form-data): {problem}")


class Form:
    """The fields of a form, and the place of its file."""

    def __init__(self, content: Stored) -> None:
        """Reads the parts. Raises ValidationError (400) for a body that is no form with a file in it."""
        try:
            self._parts = {part.name: part for part in parts_of(content)}
        except ValueError as problem:
            raise not_a_form(str(problem)) from None
        self._content = content

    @property
    def file(self) -> Part:
        """Returns the file. Raises ValidationError (400) without one."""
        part = self._parts.get("file")
        if part is None or part.filename is None:
            raise ValidationError("file: this field is required", code="missing_field")
        return part

    def text(self, name: str) -> str:
        """Returns a field. Raises ValidationError (400) without it."""
        part = self._parts.get(name)
        if part is None:
            raise ValidationError(f"{name}: this field is required", code="missing_field")
        return self._content[part.start : min(part.end, part.start + MAX_FIELD_BYTES)].decode("utf-8", "replace")
