"""Tests images and documents in requests to Converse."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from msgspec.structs import replace

from integrations.providers.base import NOTHING, Media, Needs
from integrations.providers.bedrock import ADAPTER
from integrations.providers.bedrock.request import build_body
from integrations.providers.errors import FailureKind, ProviderError, UnsupportedParameterError
from tests.integrations.bedrock_exchanges import KEYS, bedrock_request
from tests.integrations.bedrock_requests import (
    PDF,
    PNG,
    checked,
    contents,
    warned,
)


def test_media__bytes_by_data_url_and_fetched__one_form() -> None:
    url = "https://files.test/x"
    request = bedrock_request(
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": PNG}},
                    {"type": "image_url", "image_url": {"url": url}},
                    {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}},
                    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                ],
            }
        ]
    )
    assert ADAPTER.needs(request, KEYS) == Needs(media=(url,))
    body, _ = checked(replace(request, media={url: Media("image/webp", b"RIFF")}))
    assert body["messages"][0]["content"] == [
        {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
        {"image": {"format": "webp", "source": {"bytes": b"RIFF"}}},
        {"video": {"format": "mp4", "source": {"bytes": b"\x00\x00\x00"}}},
        {"audio": {"format": "wav", "source": {"bytes": b"RIFF"}}},
    ]
    with pytest.raises(ProviderError) as caught:
        build_body(request)
    assert caught.value.kind is FailureKind.UNAVAILABLE


def test_media__in_s3__native_location() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "s3://bucket/a/photo.JPG"}},
        {"type": "document_url", "document_url": {"url": "s3://bucket/report.v2.pdf"}, "name": "report.pdf"},
        {"type": "video_url", "video_url": {"url": "s3://bucket/film.3gp"}},
        {"type": "text", "text": "What is in them?"},
    ]
    request = bedrock_request(messages=[{"role": "user", "content": parts}])
    assert ADAPTER.needs(request, KEYS) == NOTHING
    image, document, video, _ = checked(request)[0]["messages"][0]["content"]
    assert image == {"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket/a/photo.JPG"}}}}
    assert document["document"]["name"] == "report"
    assert document["document"]["format"] == "pdf"
    assert video["video"]["format"] == "three_gp"


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/no-extension",
        "ftp://files.test/x.png",
        "gs://bucket/x.png",
        "data:image/tiff;base64,AAAA",
        "data:application/zip;base64,AAAA",
        "data:image/png;base64,",
        "data:image/png",
        "data:image/png;base64,A",
    ],
)
def test_media__of_no_known_form__refused(url: str) -> None:
    with pytest.raises(UnsupportedParameterError, match="messages"):
        build_body(bedrock_request(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": url}]}]))


def test_documents__names__allowed_characters_unique_and_a_text_beside_them() -> None:
    def file(name: str) -> dict[str, Any]:
        return {"type": "file", "file": {"filename": name, "file_data": PDF}}

    names = ["Q3 report (final).pdf", "Q3  report_(final).pdf", "Übersicht/2024.pdf", "", "....", "x" * 300]
    ((_, blocks),) = contents({"role": "user", "content": [file(name) for name in names]})
    found = [block["document"]["name"] for block in blocks if "document" in block]
    assert found[:4] == ["Q3 report (final)", "Q3 report (final) 1", "bersicht 2024", "Document 1"]
    assert len(set(found)) == len(names)
    assert all(len(name) <= 200 for name in found)
    assert blocks[-1] == {"text": "Q3 report (final)"}


@pytest.mark.parametrize(
    ("declared", "data", "name", "expected"),
    [
        ("image/png", b"\xff\xd8\xff\xe0", "", ("image", "jpeg")),
        ("image/jpeg", b"RIFF\x00\x00\x00\x00WEBPVP8 ", "", ("image", "webp")),
        ("application/octet-stream", b"%PDF-1.7", "", ("document", "pdf")),
        ("application/octet-stream", b"PK\x03\x04", "Report.DOCX", ("document", "docx")),
        ("image/png", b"short", "", ("image", "png")),
    ],
)
def test_media__declared_wrongly_or_not_at_all__detected_by_bytes_or_name(
    declared: str, data: bytes, name: str, expected: tuple[str, str]
) -> None:
    url = f"data:{declared};base64,{base64.b64encode(data).decode()}"
    ((_, blocks),) = contents(
        {"role": "user", "content": [{"type": "document_url", "document_url": url, "name": name}]}
    )
    kind, form = expected
    assert blocks[0][kind]["format"] == form


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("text/plain", "txt"),
        ("text/plain;charset=utf-8", "txt"),
        ("text/x-python", "txt"),
        ("text/markdown", "md"),
        ("text/csv", "csv"),
        ("text/html", "html"),
        ("application/json", "txt"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ],
)
def test_documents__media_type__bedrocks_format(media_type: str, expected: str) -> None:
    part = {"type": "document_url", "document_url": {"url": f"data:{media_type};base64,eA=="}}
    ((_, blocks),) = contents({"role": "user", "content": [part]})
    assert blocks[0]["document"]["format"] == expected


@pytest.mark.parametrize(("detail", "count"), [("high", 1), ("low", 1), ("auto", 0), (None, 0)])
def test_images__detail__named_where_it_has_an_effect(detail: str | None, count: int) -> None:
    image = {"type": "image_url", "image_url": {"url": PNG, "detail": detail}}
    warnings = warned(messages=[{"role": "user", "content": [image, image]}])
    assert warnings == ("messages.image_url.detail: dropped, bedrock has no counterpart",) * count


def test_documents__in_converses_own_words__with_their_citations() -> None:
    """Claude's citations come back as `citationsContent`, which only documents in this form enable."""
    document = {"format": "txt", "name": "N", "source": {"text": "x"}, "context": "c", "citations": {"enabled": True}}
    part = {"type": "document", "document": document}
    expected = [{"document": document}, {"text": "N"}]
    assert contents({"role": "user", "content": [part]}) == [("user", expected)]
    with pytest.raises(UnsupportedParameterError, match="document"):
        coheres = {"type": "document", "document": {"data": {"text": "x"}}}
        build_body(bedrock_request(messages=[{"role": "user", "content": [coheres]}]))
