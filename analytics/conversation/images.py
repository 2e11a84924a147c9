"""Decodes images in bodies, and recognises formats by the first bytes, never by what a client claims."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from analytics.conversation.turns import Part

# 20 MiB is the largest image that providers take.
MAX_IMAGE_CHARACTERS = 28 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Image:
    media_type: str
    data: bytes


def decode_image(part: Part) -> Image | None:
    """Returns None for a format that not all browsers and providers support."""
    if len(part.data) > MAX_IMAGE_CHARACTERS:
        return None
    try:
        data = base64.b64decode(part.data)
    except (binascii.Error, ValueError):
        return None
    media_type = sniff(data)
    return Image(media_type, data) if media_type else None


def sniff(data: bytes) -> str:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def sniff_part(part: Part) -> str:
    try:
        return sniff(base64.b64decode(part.data[:64]))
    except (binascii.Error, ValueError):
        return ""
