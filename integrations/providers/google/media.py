"""Bytes are sent as `inlineData`, and addresses that Google reads itself as `fileData`.
https://ai.google.dev/gemini-api/docs/file-input-methods,
https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference#filedata"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from integrations.providers.base import Media
from integrations.providers.common.conversation import Attachment, Native, data_url
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.google.field_names import spellings

_YOUTUBE = frozenset({"youtube.com", "www.youtube.com", "m.youtube.com", "youtu.be"})
_FILES_API = "https://generativelanguage.googleapis.com/"
# The media types that Gemini reads, by file extension; the table is fixed, unlike the machine's `mimetypes`.
_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "gif": "image/gif",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "htm": "text/html",
    "xml": "text/xml",
    "json": "application/json",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "aiff": "audio/aiff",
    "aac": "audio/aac",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "mp4": "video/mp4",
    "mpeg": "video/mpeg",
    "mpg": "video/mpg",
    "mov": "video/quicktime",
    "avi": "video/x-msvideo",
    "webm": "video/webm",
    "wmv": "video/x-ms-wmv",
    "3gp": "video/3gpp",
}
# PDF and MP4 are assumed for an address that does not show its type and that only Google can open.
_DEFAULT_TYPES = {"document": "application/pdf", "video": "video/mp4"}
# A client's function may return images, PDFs and plain text to Gemini
# (https://ai.google.dev/gemini-api/docs/function-calling#multimodal).
_RESULT_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
# Parts in Google's own form pass unchanged (https://ai.google.dev/api/caching#Part), for example to send
# `videoMetadata` beside a file.
_NATIVE = frozenset(
    spellings(("inlineData", "fileData", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"))
)
# OpenAI's values of an image's `detail`, and Google's own levels, are mapped to Google's levels:
# https://ai.google.dev/gemini-api/docs/media-resolution.
RESOLUTIONS = {
    "low": "MEDIA_RESOLUTION_LOW",
    "medium": "MEDIA_RESOLUTION_MEDIUM",
    "high": "MEDIA_RESOLUTION_HIGH",
    "original": "MEDIA_RESOLUTION_ULTRA_HIGH",
    "ultra_high": "MEDIA_RESOLUTION_ULTRA_HIGH",
}
_TYPE_ALIASES = {"image/jpg": "image/jpeg"}


def is_native(part: Mapping[str, Any]) -> bool:
    """Whether a part has Google's own form: its `type`, which the wire format requires, names its content's field."""
    return part.get("type") in (None, *part) and not _NATIVE.isdisjoint(part)


def to_fetch(attachments: Iterable[Attachment], *, vertex: bool) -> tuple[str, ...]:
    addresses = [
        attachment.url
        for attachment in attachments
        if not attachment.is_inline
        and not isinstance(attachment, Native)
        and _by_address(attachment, vertex=vertex) is None
    ]
    return tuple(dict.fromkeys(addresses))


def media_part(attachment: Attachment, fetched: Mapping[str, Media], *, vertex: bool) -> dict[str, Any]:
    if isinstance(attachment, Native):
        return {name: value for name, value in attachment.part.items() if name != "type"}
    if attachment.is_inline:
        return _inline(*_from_data_url(attachment.url))
    by_address = _by_address(attachment, vertex=vertex)
    if by_address is not None:
        return {"fileData": by_address}
    media = fetched.get(attachment.url)
    if media is None:
        raise UnsupportedParameterError("messages", f"the file at {attachment.url[:200]} was not fetched")
    return _inline(media.media_type, base64.b64encode(media.data).decode("ascii"))


def fits_result(part: Mapping[str, Any]) -> bool:
    """Whether a function may return this part; other media stand beside the result."""
    blob = part.get("inlineData") or part.get("fileData") or {}
    return blob.get("mimeType") in _RESULT_TYPES


def _inline(media_type: str, data: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": _TYPE_ALIASES.get(media_type, media_type), "data": data}}


def _from_data_url(url: str) -> tuple[str, str]:
    head, _, body = url.partition(",")
    media_type = head[5:].partition(";")[0].strip().lower()
    if media_type and head[-7:].lower() == ";base64" and _is_base64(body):
        return media_type, body
    media_type, data = data_url(url)
    return media_type, base64.b64encode(data).decode("ascii")


def _is_base64(text: str) -> bool:
    try:
        return bool(binascii.a2b_base64(text, strict_mode=True))
    except ValueError:
        return False


def _by_address(attachment: Attachment, *, vertex: bool) -> dict[str, str] | None:
    url = attachment.url
    if url.startswith(("gs://", _FILES_API)):
        return _file(url, _guess(attachment) or _DEFAULT_TYPES.get(attachment.kind, ""))
    try:
        place = urlsplit(url)
    except ValueError:
        raise UnsupportedParameterError("messages", "the address of a file is none") from None
    if place.hostname in _YOUTUBE:
        return _file(url, "video/mp4")
    if vertex and place.scheme == "https" and (media_type := _guess(attachment)):
        return _file(url, media_type)
    return None


def _file(url: str, media_type: str) -> dict[str, str]:
    return {"fileUri": url, "mimeType": media_type} if media_type else {"fileUri": url}


def _guess(attachment: Attachment) -> str:
    for name in (attachment.url.partition("?")[0].partition("#")[0], attachment.name):
        extension = name.rpartition("/")[2].rpartition(".")[2].lower()
        if extension in _TYPES:
            return _TYPES[extension]
    return ""
