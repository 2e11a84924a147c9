"""Reads the bytes of a protobuf message field by field, without building the message.

An export is read record by record, so that one broken record does not reject its batch, and a body of many megabytes
never becomes one much larger object.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_MAX_VARINT = 10
# protobuf's own decoders have the same limit.
_MAX_NESTED = 100


class BrokenMessageError(ValueError):
    pass


def fields(data: memoryview) -> Iterator[tuple[int, int, int, int, int]]:
    """Yields (number, wire type, start of the field, start of its content, end) for each field, in order.

    Raises BrokenMessageError for malformed bytes.
    """
    position, size = 0, len(data)
    while position < size:
        began = position
        tag, position = _varint(data, position, size)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise BrokenMessageError("a field has the number 0, which no field may have")
        content = position
        if kind == BYTES:
            length, content = _varint(data, position, size)
            position = content + length
        elif kind == VARINT:
            _, position = _varint(data, position, size)
        elif kind in _FIXED:
            position += _FIXED[kind]
        else:
            # Groups have not been written by anything for fifteen years, and OTLP has none.
            raise BrokenMessageError(f"a field has the unknown wire type {kind}")
        if position > size:
            raise BrokenMessageError("a field ends beyond its message")
        yield number, kind, began, content, position


def contents(data: memoryview) -> dict[int, list[memoryview]]:
    found: dict[int, list[memoryview]] = {}
    for number, kind, _, content, end in fields(data):
        if kind == BYTES:
            found.setdefault(number, []).append(data[content:end])
    return found


def with_valid_text(data: memoryview, descriptor: Any, depth: int = 0) -> bytes:
    """Replaces invalid UTF-8, which senders in other languages let through, by U+FFFD.

    `descriptor` is that of the message's class; its type depends on the installed protobuf implementation.
    """
    if depth > _MAX_NESTED:
        raise BrokenMessageError("nested too deeply")
    parts: list[bytes | memoryview] = []
    for number, kind, began, content, end in fields(data):
        field = descriptor.fields_by_number.get(number)
        if (
            kind != BYTES
            or field is None
            or field.type not in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE)
        ):
            parts.append(data[began:end])
            continue
        inner = data[content:end]
        if field.type == FieldDescriptor.TYPE_STRING:
            value = str(inner, "utf-8", "replace").encode()
        else:
            value = with_valid_text(inner, field.message_type, depth + 1)
        parts += (encoded_varint(number << 3 | BYTES), encoded_varint(len(value)), value)
    return b"".join(parts)


def _varint(data: memoryview, position: int, size: int) -> tuple[int, int]:
    result = shift = 0
    for index in range(position, min(position + _MAX_VARINT, size)):
        byte = data[index]
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, index + 1
        shift += 7
    raise BrokenMessageError("a number does not end")


def encoded_varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
