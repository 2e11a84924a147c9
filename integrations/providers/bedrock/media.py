"""https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from integrations.providers.base import Media
from integrations.providers.common.conversation import Attachment, data_url, sniffed
from integrations.providers.errors import FailureKind, ProviderError, UnsupportedParameterError

PROVIDER = "bedrock"

_IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_VIDEOS = {
    "video/x-matroska": "mkv",
    "video/quicktime": "mov",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/x-flv": "flv",
    "video/mpeg": "mpeg",
    "video/x-ms-wmv": "wmv",
    "video/3gpp": "three_gp",
}
_AUDIO = {
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
    "audio/opus": "opus",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mp4": "mp4",
    "audio/x-m4a": "m4a",
    "audio/m4a": "m4a",
    "audio/webm": "webm",
    "audio/pcm": "pcm",
    "audio/pcm16": "pcm",
}
_DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/markdown": "md",
    "text/x-markdown": "md",
    # Converse has no name for JSON and similar types, so such a file is sent as plain text.
    "application/json": "txt",
    "application/xml": "txt",
    "application/yaml": "txt",
}
_BY_EXTENSION = {
    **{name: ("image", name) for name in ("png", "jpeg", "gif", "webp")},
    "jpg": ("image", "jpeg"),
    **{name: ("video", name) for name in ("mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv")},
    "3gp": ("video", "three_gp"),
    **{name: ("audio", name) for name in ("mp3", "opus", "wav", "aac", "flac", "ogg", "m4a", "mka")},
    **{name: ("document", name) for name in ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")},
    "htm": ("document", "html"),
}
_GENERIC_TYPES = ("application/octet-stream", "application/zip", "application/x-zip-compressed")
_NAME_LENGTH = 200
_FORBIDDEN = re.compile(r"[^A-Za-z0-9\s\-()\[\]]")
_BLANKS = re.compile(r"\s+")


@dataclass(slots=True)
class MediaBlocks:
    fetched: Mapping[str, Media]
    names: set[str] = field(default_factory=set)

    def block(self, attachment: Attachment) -> dict[str, Any]:
        if is_s3(attachment.url):
            kind, format_name = self._by_extension(attachment)
            source: dict[str, Any] = {"s3Location": {"uri": attachment.url}}
        else:
            media_type, data = self._content(attachment)
            kind, format_name = kind_of_media(sniffed(data) or media_type, attachment.name)
            source = {"bytes": data}
        block: dict[str, Any] = {"format": format_name, "source": source}
        if kind == "document":
            block["name"] = self._name(attachment.name)
        return {kind: block}

    def _content(self, attachment: Attachment) -> tuple[str, bytes]:
        if attachment.is_inline:
            media_type, data = data_url(attachment.url)
            if not data:
                raise _unsupported("a data URL holds no data")
            return media_type, data
        media = self.fetched.get(attachment.url)
        if media is not None:
            return media.media_type, media.data
        if not is_http(attachment.url):
            raise _unsupported("an address has to start with data:, https: or s3:")
        raise ProviderError("a file of the request was not fetched", kind=FailureKind.UNAVAILABLE, provider=PROVIDER)

    def _by_extension(self, attachment: Attachment) -> tuple[str, str]:
        known = _BY_EXTENSION.get(_extension(attachment.url))
        if known is None:
            raise _unsupported("the name of a file in S3 has to end in the extension of its format")
        return known

    def _name(self, filename: str) -> str:
        stem = filename.rpartition(".")[0] or filename
        name = _BLANKS.sub(" ", _FORBIDDEN.sub(" ", stem)).strip()[: _NAME_LENGTH - 8] or "Document"
        unique, number = name, 1
        while unique in self.names or unique == "Document":
            unique = f"{name} {number}"
            number += 1
        self.names.add(unique)
        return unique


def is_s3(url: str) -> bool:
    return url[:5].lower() == "s3://"


def is_http(url: str) -> bool:
    return url[:8].lower().startswith(("http://", "https://"))


def kind_of_media(media_type: str, name: str = "") -> tuple[str, str]:
    media_type = media_type.partition(";")[0].strip().lower()
    for kind, formats in (("image", _IMAGES), ("video", _VIDEOS), ("audio", _AUDIO), ("document", _DOCUMENTS)):
        if media_type in formats:
            return kind, formats[media_type]
    if media_type.startswith("text/"):
        return "document", "txt"
    if media_type in _GENERIC_TYPES and _extension(name) in _BY_EXTENSION:
        return _BY_EXTENSION[_extension(name)]
    raise _unsupported(f"Bedrock takes no file of type {media_type!r}")


def _extension(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _unsupported(problem: str) -> UnsupportedParameterError:
    return UnsupportedParameterError("messages", problem, provider=PROVIDER)
