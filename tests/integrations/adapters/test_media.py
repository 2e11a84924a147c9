"""Tests of images and documents, by data URL and by address."""

from __future__ import annotations

from typing import Any

import pytest

from integrations.providers.base import UpstreamRequest
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.adapters.subject import BASE_URL, PDF, PNG, Subject, data_url, is_named, refusal_or_request
from tests.tables.cases import tabled

IMAGE_ADDRESS = "https://files.test/picture.png?v=1"
PDF_ADDRESS = "https://files.test/report.pdf"


def user_message(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, *parts]}]


def image(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def document(url: str) -> dict[str, Any]:
    return {"type": "document_url", "document_url": {"url": url}}


def file(data: str) -> dict[str, Any]:
    return {"type": "file", "file": {"filename": "report.pdf", "file_data": data}}


def taken(subject: Subject, able: bool, *parts: dict[str, Any]) -> UpstreamRequest | None:
    """Returns the request where the dialect has the medium; asserts the refusal and returns None where it has not."""
    result = refusal_or_request(subject, messages=user_message(*parts))
    if isinstance(result, UnsupportedParameterError):
        assert not able, result.message
        assert result.parameter == "messages"
        return None
    assert able, "a medium that the dialect has not was sent"
    assert subject.read(result).turns[0][1].startswith("What is this?")
    return result


def fetches(subject: Subject, *parts: dict[str, Any]) -> tuple[str, ...]:
    request = subject.request(messages=user_message(*parts))
    return subject.adapter.needs(request, subject.credentials).media


def test_image__data_url__bytes_and_type(subject: Subject) -> None:
    request = taken(subject, subject.fake.can.images, image(data_url()))
    if request is not None:
        assert subject.read(request).images == (("image/png", PNG),)
        assert not request.warnings
        assert not fetches(subject, image(data_url()))


def test_image__with_detail__arrives(subject: Subject) -> None:
    request = taken(subject, subject.fake.can.images, image(data_url(), detail="low"))
    if request is not None:
        assert subject.read(request).images == (("image/png", PNG),)


def test_image__address__passed_on_or_fetched(subject: Subject) -> None:
    """The image is fetched from exactly this address, unless the provider takes addresses itself."""
    request = taken(subject, subject.fake.can.images, image(IMAGE_ADDRESS))
    if request is not None:
        fetched = fetches(subject, image(IMAGE_ADDRESS))
        assert fetched in ((), (IMAGE_ADDRESS,))
        expected: tuple[str, bytes | str] = ("image/png", PNG) if fetched else ("url", IMAGE_ADDRESS)
        assert subject.read(request).images == (expected,)


def test_images__several__in_order(subject: Subject) -> None:
    gif = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
    request = taken(subject, subject.fake.can.images, image(data_url()), image(data_url("image/gif", gif)))
    if request is not None:
        assert subject.read(request).images == (("image/png", PNG), ("image/gif", gif))


def test_image__same_address_twice__named_once(subject: Subject) -> None:
    assert len(fetches(subject, image(IMAGE_ADDRESS), image(IMAGE_ADDRESS))) <= 1


def test_document__data_url__bytes_and_type(subject: Subject) -> None:
    request = taken(subject, subject.fake.can.documents, document(data_url("application/pdf", PDF)))
    if request is not None:
        assert subject.read(request).documents == (("application/pdf", PDF),)


def test_document__file_data__bytes_and_type(subject: Subject) -> None:
    request = taken(subject, subject.fake.can.documents, file(data_url("application/pdf", PDF)))
    if request is not None:
        assert subject.read(request).documents == (("application/pdf", PDF),)


def test_document__address__passed_on_or_fetched(subject: Subject) -> None:
    request = taken(subject, subject.fake.can.documents, document(PDF_ADDRESS))
    if request is not None:
        fetched = fetches(subject, document(PDF_ADDRESS))
        assert fetched in ((), (PDF_ADDRESS,))
        expected: tuple[str, bytes | str] = ("application/pdf", PDF) if fetched else ("url", PDF_ADDRESS)
        assert subject.read(request).documents == (expected,)


@tabled
def test_part__that_few_dialects_know__in_the_body_or_refused(subject: Subject, part: dict[str, Any]) -> None:
    result = refusal_or_request(subject, messages=user_message(part))
    if isinstance(result, UnsupportedParameterError):
        assert result.parameter == "messages"
    else:
        assert result.body != subject.build(messages=user_message()).body
        assert not is_named("messages", result)


@pytest.mark.parametrize("url", ["data:image/png;base64", "data:image/png;base64,!!!"])
def test_image__data_url_without_data__refused_or_left_to_the_provider(subject: Subject, url: str) -> None:
    """The adapter refuses the data URL or sends it unchanged, and never crashes."""
    result = refusal_or_request(subject, messages=user_message(image(url)))
    assert isinstance(result, UnsupportedParameterError) or result.url.startswith(BASE_URL)
