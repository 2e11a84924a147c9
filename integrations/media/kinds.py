"""Detects media types from a file's bytes; without I/O.

The declared type is often wrong and may be a lie, so the bytes decide. Only kinds of text look alike; for them the
declared type counts, then the ending of the name.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable

_Sniff = Callable[[bytes], str | None]

_OOXML = "application/vnd.openxmlformats-officedocument."
_HEAD = 4096
# An own table of endings is used because the system's tables would make the result differ between machines.
_ENDINGS = mimetypes.MimeTypes()
_ENDINGS.add_type("text/markdown", ".md")  # The module `mimetypes` knows the ending of Markdown since Python 3.13.

# The first bytes of files and their media types; https://www.iana.org/assignments/media-types,
# https://mimesniff.spec.whatwg.org.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
    (b"FLV\x01", "video/x-flv"),
    (b"{\\rtf", "application/rtf"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"hevc": "image/heic",
    b"heim": "image/heic",
    b"heis": "image/heic",
    b"mif1": "image/heif",
    b"msf1": "image/heif",
    b"qt  ": "video/quicktime",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"3gp4": "video/3gpp",
    b"3gp5": "video/3gpp",
    b"3gp6": "video/3gpp",
}
# A zip archive holds the names of its members uncompressed before each member, so that Office files can be told apart.
_IN_ZIP = (
    (b"word/document.xml", _OOXML + "wordprocessingml.document"),
    (b"xl/workbook.", _OOXML + "spreadsheetml.sheet"),
    (b"ppt/presentation.xml", _OOXML + "presentationml.presentation"),
)
_IN_OLE = (
    ("WordDocument".encode("utf-16-le"), "application/msword"),
    ("Workbook".encode("utf-16-le"), "application/vnd.ms-excel"),
    ("PowerPoint Document".encode("utf-16-le"), "application/vnd.ms-powerpoint"),
)
_HTML = (b"<!doctype html", b"<html", b"<head", b"<body", b"<script", b"<title")
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\x0c\r\x1b")


def media_type_of(data: bytes, *, declared: str = "", name: str = "") -> str | None:
    """Returns the media type in lower case, without parameters; None for an unknown kind of file. `declared` is the
    Content-Type that came with the file, `name` the file's name or path."""
    head = data[:_HEAD]
    for signature, media_type in _SIGNATURES:
        if head.startswith(signature):
            return media_type
    for sniff in _SNIFFERS:
        found = sniff(data)
        if found is not None:
            return found
    return _text_type(head, declared, name) if _is_text(head) else None


def promised_by(name: str) -> str | None:
    return _ENDINGS.guess_type(name, strict=False)[0]


def is_text(media_type: str) -> bool:
    major, _, minor = media_type.partition("/")
    return major == "text" or (major == "application" and (minor in _TEXTS or minor.endswith(("+json", "+xml"))))


_TEXTS = frozenset(
    {"json", "xml", "csv", "yaml", "x-yaml", "javascript", "x-javascript", "x-ndjson", "jsonl", "sql", "toml", "x-sh"}
)


def _riff(data: bytes) -> str | None:
    return _RIFF.get(data[8:12]) if data.startswith(b"RIFF") else None


def _iso_media(data: bytes) -> str | None:
    return _BRANDS.get(data[8:12], "video/mp4") if data[4:8] == b"ftyp" else None


def _matroska(data: bytes) -> str | None:
    if not data.startswith(b"\x1aE\xdf\xa3"):
        return None
    return "video/webm" if b"webm" in data[:64] else "video/x-matroska"


def _ogg(data: bytes) -> str | None:
    if not data.startswith(b"OggS"):
        return None
    return "video/ogg" if b"\x80theora" in data[:128] else "audio/ogg"


def _mpeg_audio(data: bytes) -> str | None:
    """Tells MPEG audio by the sync word of a frame (eleven ones), its version and its layer."""
    if len(data) < 4 or data[0] != 0xFF or data[1] & 0xE0 != 0xE0:
        return None
    if data[1] & 0xF6 == 0xF0:
        return "audio/aac"
    is_layer_3, has_bitrate = data[1] & 0x06 == 0x02, data[2] & 0xF0 != 0xF0
    return "audio/mpeg" if is_layer_3 and has_bitrate else None


def _aiff(data: bytes) -> str | None:
    return "audio/aiff" if data.startswith(b"FORM") and data[8:12] in (b"AIFF", b"AIFC") else None


def _bmp(data: bytes) -> str | None:
    """Also checks the size of the header, which has few values: `BM` alone may begin a text."""
    is_bitmap = data.startswith(b"BM") and data[14:18] in {
        bytes((size, 0, 0, 0)) for size in (12, 40, 52, 56, 108, 124)
    }
    return "image/bmp" if is_bitmap else None


def _pdf(data: bytes) -> str | None:
    """Readers accept the header of a PDF anywhere in the first kilobyte (ISO 32000, annex H)."""
    return "application/pdf" if b"%PDF-" in data[:1024] else None


def _office(data: bytes) -> str | None:
    if data.startswith(b"PK\x03\x04"):
        return next((media_type for member, media_type in _IN_ZIP if member in data), "application/zip")
    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return next((media_type for stream, media_type in _IN_OLE if stream in data), None)
    return None


_SNIFFERS: tuple[_Sniff, ...] = (_riff, _iso_media, _matroska, _ogg, _mpeg_audio, _bmp, _aiff, _pdf, _office)


def _is_text(head: bytes) -> bool:
    encoding = next((encoding for bom, encoding in _BOMS if head.startswith(bom)), "utf-8")
    if encoding == "utf-8" and not _CONTROLS.isdisjoint(head):
        return False
    try:
        head.decode(encoding)
    except UnicodeDecodeError as error:
        # The read may have cut the last character in two, which is no fault of the text.
        return error.start > len(head) - 4 and len(head) == _HEAD
    return True


def _text_type(head: bytes, declared: str, name: str) -> str:
    media_type = declared.partition(";")[0].strip().lower()
    if is_text(media_type) or media_type == "image/svg+xml":
        return media_type
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith(_HTML):
        return "text/html"
    if b"<svg" in start and start.startswith((b"<svg", b"<?xml", b"<!--")):
        return "image/svg+xml"
    promised = promised_by(name)
    return promised if promised is not None and is_text(promised) else "text/plain"
