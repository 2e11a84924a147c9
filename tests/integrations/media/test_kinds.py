from __future__ import annotations

import io
import struct
import wave
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.media.kinds import is_text, media_type_of, promised_by
from tests.tables.cases import tabled

OOXML = "application/vnd.openxmlformats-officedocument."


def zipped(*members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(member, "content " * 100)
    return buffer.getvalue()


def wav() -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(1600))
    return buffer.getvalue()


def iso(brand: bytes) -> bytes:
    return struct.pack(">I", 24) + b"ftyp" + brand + b"\0\0\0\0isommp42" + bytes(50)


BMP = b"BM" + struct.pack("<IHHIIiiHH", 70, 0, 0, 54, 40, 2, 2, 1, 24) + bytes(40)

FILES: dict[str, tuple[bytes, str]] = {
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
    "jpeg": (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "image/jpeg"),
    "jpeg with exif": (b"\xff\xd8\xff\xe1\0\x10Exif\0", "image/jpeg"),
    "gif": (b"GIF89a\x01\0\x01\0", "image/gif"),
    "webp": (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
    "bmp": (BMP, "image/bmp"),
    "tiff": (b"II*\0\x08\0\0\0", "image/tiff"),
    "tiff, big endian": (b"MM\0*\0\0\0\x08", "image/tiff"),
    "heic": (iso(b"heic"), "image/heic"),
    "heif": (iso(b"mif1"), "image/heif"),
    "avif": (iso(b"avif"), "image/avif"),
    "mp4": (iso(b"isom"), "video/mp4"),
    "m4a": (iso(b"M4A "), "audio/mp4"),
    "mov": (iso(b"qt  "), "video/quicktime"),
    "3gp": (iso(b"3gp5"), "video/3gpp"),
    "webm": (b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\x82\x84webmB\x87", "video/webm"),
    "mkv": (b"\x1aE\xdf\xa3\xa3B\x86\x81\x01B\xf7\x81\x01B\x82\x88matroska", "video/x-matroska"),
    "avi": (b"RIFF\x24\0\0\0AVI LIST", "video/x-msvideo"),
    "mpeg": (b"\0\0\x01\xba\x44\0", "video/mpeg"),
    "flv": (b"FLV\x01\x05", "video/x-flv"),
    "mp3 with tags": (b"ID3\x04\0\0\0\0\0\0", "audio/mpeg"),
    "mp3 frame": (b"\xff\xfb\x90\x64" + bytes(100), "audio/mpeg"),
    "aac": (b"\xff\xf1\x50\x80" + bytes(100), "audio/aac"),
    "wav": (wav(), "audio/wav"),
    "ogg": (b"OggS\0\x02" + bytes(22) + b"\x01\x1e\x01vorbis", "audio/ogg"),
    "opus": (b"OggS\0\x02" + bytes(22) + b"\x01\x13OpusHead", "audio/ogg"),
    "ogv": (b"OggS\0\x02" + bytes(22) + b"\x01\x2a\x80theora", "video/ogg"),
    "flac": (b"fLaC\0\0\0\x22", "audio/flac"),
    "aiff": (b"FORM\0\0\0\x10AIFFCOMM", "audio/aiff"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", "application/pdf"),
    "pdf behind junk": (b"\r\n\0junk\r\n%PDF-1.4\n", "application/pdf"),
    "docx": (zipped("[Content_Types].xml", "word/document.xml"), OOXML + "wordprocessingml.document"),
    "xlsx": (zipped("[Content_Types].xml", "xl/workbook.xml"), OOXML + "spreadsheetml.sheet"),
    "pptx": (zipped("[Content_Types].xml", "ppt/presentation.xml"), OOXML + "presentationml.presentation"),
    "zip": (zipped("a.txt"), "application/zip"),
    "doc": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500) + "WordDocument".encode("utf-16-le"),
        "application/msword",
    ),
    "xls": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500) + "Workbook".encode("utf-16-le"),
        "application/vnd.ms-excel",
    ),
    "rtf": (b"{\\rtf1\\ansi hello}", "application/rtf"),
    "svg": (b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>', "image/svg+xml"),
    "html": (b"\n  <!DOCTYPE html>\n<html><p>hello</p></html>", "text/html"),
    "text": ("Grüße, 世界\n".encode(), "text/plain"),
    "utf-16 text": ("Grüße, 世界\n".encode("utf-16"), "text/plain"),
    "text like a bitmap": (b"BMW builds cars and motorcycles in Munich.", "text/plain"),
    "text cut within a character": (b"x" * 4095 + "世".encode() * 500, "text/plain"),
}


@pytest.mark.parametrize("kind", FILES)
def test_media_type__by_the_bytes__whatever_is_declared(kind: str) -> None:
    data, expected = FILES[kind]
    assert media_type_of(data) == expected
    assert media_type_of(data, declared="application/octet-stream") == expected
    if not is_text(expected) and expected != "image/svg+xml":
        assert media_type_of(data, declared="text/html", name="page.html") == expected


@tabled
def test_media_type__text__is_what_is_declared_or_named(declared: str, name: str, expected: str) -> None:
    assert media_type_of(b"a,b\n1,2\n", declared=declared, name=name) == expected


@pytest.mark.parametrize(
    "data", [bytes(range(256)), b"\x7fELF\x02\x01\x01\0", b"MZ\x90\0\x03", b"abc\0def", b"caf\xe9"]
)
def test_media_type__unknown__is_none_whatever_is_declared(data: bytes) -> None:
    assert media_type_of(data, declared="text/plain", name="a.txt") is None


@given(st.binary(max_size=300), st.text(max_size=20), st.text(max_size=20))
def test_media_type__any_bytes__never_fails(data: bytes, declared: str, name: str) -> None:
    found = media_type_of(data, declared=declared, name=name)
    assert found is None or "/" in found


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.PNG", "image/png"), ("/x/y.webp", "image/webp"), ("a.pdf", "application/pdf"), ("a", None)],
)
def test_promised_by__ending(name: str, expected: str | None) -> None:
    assert promised_by(name) == expected
