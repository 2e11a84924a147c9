"""The size of a message without its files: a photograph in a data URL is no long text (docs/limits.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from django.conf import settings

from core.errors import ValidationError

MAX_MESSAGE_BYTES = 1_048_576

# For each type of content part, its object and the field of that object that may hold a file instead of an address.
# `image` and `document` are content blocks of Anthropic's.
_FILES = {
    "image_url": ("image_url", "url"),
    "document_url": ("document_url", "url"),
    "input_audio": ("input_audio", "data"),
    "file": ("file", "file_data"),
    "image": ("source", "data"),
    "document": ("source", "data"),
}
# Only these two types need the prefix of a data URL to tell a file from an address; the others always hold a file.
_DATA_URL = b'"data:'
_ADDRESSES = frozenset({"image_url", "document_url"})


class _RawMessages(msgspec.Struct):
    messages: list[dict[str, msgspec.Raw]]


class _InlineFile(NamedTuple):
    field: str
    size: int


_messages_decoder = msgspec.json.Decoder(_RawMessages)
_parts_decoder = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_object_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def check_message_sizes(body: bytes) -> None:
    """Raises ValidationError if a message of `body` is too large. `body` has been decoded once before.

    A message's size is that of its content: the bytes of a text, or the JSON of an array of parts without their files.
    """
    for index, message in enumerate(_messages_decoder.decode(body).messages):
        raw = bytes(message.get("content", b""))
        if len(raw) > MAX_MESSAGE_BYTES:
            check_content_size(f"messages[{index}].content", raw)


def check_content_size(field: str, raw: bytes) -> None:
    size = len(msgspec.json.decode(raw, type=str).encode()) if raw.startswith(b'"') else _without_files(field, raw)
    if size > MAX_MESSAGE_BYTES:
        raise ValidationError(
            f"{field}: {size} bytes, at most {MAX_MESSAGE_BYTES} are allowed", code="message_too_large"
        )


def check_file_size(field: str, size: int) -> None:
    max_file_bytes = settings.GATEWAY_INLINE_FILE_BYTES
    if size > max_file_bytes:
        raise ValidationError(
            f"{field}: an inline file of {size} bytes, at most {max_file_bytes} are allowed; give its address instead",
            code="message_too_large",
        )


def _without_files(field: str, raw: bytes) -> int:
    size = len(raw)
    for file in _inline_files(raw):
        check_file_size(f"{field}{file.field}", file.size)
        size -= file.size
    return size


def _inline_files(raw: bytes) -> Iterator[_InlineFile]:
    for position, part in enumerate(_parts_decoder.decode(raw)):
        kind = bytes(part.get("type", b"")).strip(b'"').decode("ascii", "replace")
        name, field = _FILES.get(kind, ("", ""))
        holder = bytes(part.get(name, b"")).strip()
        if not holder.startswith(b"{"):
            continue
        content = bytes(_object_decoder.decode(holder).get(field, b"")).strip()
        if content.startswith(_DATA_URL if kind in _ADDRESSES else b'"'):
            yield _InlineFile(f"[{position}].{name}.{field}", len(content) - 2)
