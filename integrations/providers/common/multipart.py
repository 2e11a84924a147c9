"""Reads and changes the fields of a form (https://www.rfc-editor.org/rfc/rfc7578), whose boundary is in its first line.
Copies the bytes of files only into a changed body."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import Message
from typing import NamedTuple, Protocol

_MAX_PARTS = 100
_MAX_BOUNDARY_BYTES = 200
_MAX_HEAD_BYTES = 64 * 1024


class Bytes(Protocol):
    def __getitem__(self, place: slice, /) -> bytes: ...

    def find(self, wanted: bytes, start: int = 0, end: int | None = None, /) -> int: ...


class Part(NamedTuple):
    """A field or a file: its name, the filename (None for a field), and the place of its content in the body."""

    name: str
    filename: str | None
    start: int
    end: int


def boundary_of(body: Bytes) -> bytes:
    end = body.find(b"\r\n", 0, _MAX_BOUNDARY_BYTES)
    if body[:2] != b"--" or end < 3:
        raise ValueError("the body does not begin with a boundary")
    return body[2:end]


def parts_of(body: Bytes) -> list[Part]:
    """Raises ValueError for a body that is not a form."""
    return list(_parts(body, b"\r\n--" + boundary_of(body)))


def _parts(body: Bytes, delimiter: bytes) -> Iterator[Part]:
    at = len(delimiter)
    for _ in range(_MAX_PARTS):
        content, end = body.find(b"\r\n\r\n", at), body.find(delimiter, at)
        if content < 0 or end < content:
            raise ValueError("a part of the form has no end")
        if content - at > _MAX_HEAD_BYTES:
            raise ValueError(f"the head of a part has more than {_MAX_HEAD_BYTES} bytes")
        yield _part(body[at:content], content + 4, end)
        at = end + len(delimiter)
        if body[at : at + 2] == b"--":
            return
        at += 2
    raise ValueError(f"the form has more than {_MAX_PARTS} parts")


def _part(head: bytes, start: int, end: int) -> Part:
    message = Message()
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, colon, value = line.partition(":")
        if colon and name.strip().lower() == "content-disposition":
            message["content-disposition"] = value.strip()
    field = message.get_param("name", header="content-disposition")
    if not isinstance(field, str):
        raise ValueError("a part of the form has no name")
    # The boundary behind an empty content may share its line break with the empty line that ends the head.
    return Part(field, message.get_filename(), start, max(start, end))


def text_of(body: Bytes, part: Part) -> str:
    return body[part.start : part.end].decode("utf-8", "replace")


def with_field(body: bytes, name: str, value: str) -> bytes:
    for part in parts_of(body):
        if part.name == name and text_of(body, part) != value:
            return body[: part.start] + value.encode() + body[part.end :]
    return body
