"""https://docs.anthropic.com/en/docs/build-with-claude/vision, …/pdf-support"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from integrations.providers.anthropic.native import is_native
from integrations.providers.base import ChatRequest, Media
from integrations.providers.common.conversation import Attachment, Native, data_url, read_conversation, sniffed
from integrations.providers.errors import UnsupportedParameterError

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF = "application/pdf"
_BY_ADDRESS = ("image_url", "document_url")
_TEXTS = frozenset({"application/json", "application/xml", "application/x-yaml", "application/javascript"})
# The vendor fetches PDFs by address; text files are fetched by the gateway and sent in the request.
_TEXT_NAMES = (".txt", ".md", ".markdown", ".csv", ".tsv", ".json", ".xml", ".yaml", ".yml", ".log", ".rst", ".html")
# The first 64 characters of a file's base64 are decoded to detect its type.
_HEAD_CHARACTERS = 64


def addresses_to_fetch(request: ChatRequest, *, fetched_there: bool = True) -> tuple[str, ...]:
    """The addresses that the vendor does not fetch: those without TLS and text files, or all at a host that fetches
    nothing."""
    if not any(map(_names_an_address, request.fields["messages"])):
        return ()
    try:
        conversation = read_conversation(request.fields, native=is_native)
    except UnsupportedParameterError:
        return ()  # The error is raised again, and then reaches the client, when the request is built.
    found = [
        attachment.url
        for attachment in conversation.attachments()
        if not isinstance(attachment, Native) and not attachment.is_inline
        if not (fetched_there and _is_fetched_there(attachment))
    ]
    return tuple(dict.fromkeys(found))


def attachment_block(attachment: Attachment, media: Mapping[str, Media]) -> dict[str, Any]:
    """Raises UnsupportedParameterError for kinds that Claude cannot read: audio, video, office files."""
    if attachment.kind in ("audio", "video"):
        raise UnsupportedParameterError("messages", f"anthropic takes no {attachment.kind}")
    if attachment.is_inline:
        return _inline(attachment)
    fetched = media.get(attachment.url)
    if fetched is not None:
        return _from_bytes(attachment, fetched.media_type, fetched.data)
    source = {"type": "url", "url": attachment.url}
    return _image(source) if attachment.kind == "image" else _document(source, attachment.name)


def _names_an_address(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(part.get("type") in _BY_ADDRESS for part in content)


def _is_fetched_there(attachment: Attachment) -> bool:
    address = urlsplit(attachment.url)
    if address.scheme.lower() != "https":
        return False
    return attachment.kind == "image" or not address.path.lower().endswith(_TEXT_NAMES)


def _inline(attachment: Attachment) -> dict[str, Any]:
    head, comma, body = attachment.url[5:].partition(",")
    declared, _, options = head.partition(";")
    if not comma or "%" in body or not options.lower().endswith("base64"):
        return _from_bytes(attachment, *data_url(attachment.url))
    media_type = sniffed(_head_of(body)) or _plain(declared)
    if media_type not in _IMAGES and media_type != _PDF:
        return _from_bytes(attachment, *data_url(attachment.url))
    # The base64 is passed on unchanged, so that megabytes need not be decoded and encoded again.
    return _base64_block(attachment, media_type, body)


def _from_bytes(attachment: Attachment, declared: str, data: bytes) -> dict[str, Any]:
    media_type = sniffed(data[:_HEAD_CHARACTERS]) or _plain(declared)
    if media_type in _IMAGES or media_type == _PDF:
        return _base64_block(attachment, media_type, base64.b64encode(data).decode())
    text = _text(media_type, data) if attachment.kind == "document" else None
    if text is None:
        raise UnsupportedParameterError("messages", f"anthropic takes no {attachment.kind} of type {media_type!r}")
    return _document({"type": "text", "media_type": "text/plain", "data": text}, attachment.name)


def _base64_block(attachment: Attachment, media_type: str, data: str) -> dict[str, Any]:
    source = {"type": "base64", "media_type": media_type, "data": data}
    return _document(source, attachment.name) if media_type == _PDF else _image(source)


def _image(source: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "image", "source": source}


def _document(source: Mapping[str, Any], title: str) -> dict[str, Any]:
    block = {"type": "document", "source": source}
    return {**block, "title": title} if title else block


def _text(media_type: str, data: bytes) -> str | None:
    if not (media_type.startswith("text/") or media_type in _TEXTS or media_type == "application/octet-stream"):
        return None
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _plain(media_type: str) -> str:
    name = media_type.strip().lower()
    return "image/jpeg" if name == "image/jpg" else name


def _head_of(body: str) -> bytes:
    try:
        return base64.b64decode(body[:_HEAD_CHARACTERS] + "==", validate=False)
    except (binascii.Error, ValueError):
        return b""
