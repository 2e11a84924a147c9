"""Tests images and documents in requests to the Messages API."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import ChatRequest, Media
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.anthropic_requests import (
    BUDGETS,
    PNG,
    content_of,
    data_url,
    image,
)
from tests.integrations.exchanges import chat_request, credentials

JPEG = b"\xff\xd8\xff\xe0" + bytes(32)
PDF = b"%PDF-1.7\n" + bytes(32)


def document(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "document_url", "document_url": {"url": url}, **more}


@pytest.mark.parametrize(
    ("declared", "data", "expected"),
    [("image/png", PNG, "image/png"), ("image/png", JPEG, "image/jpeg"), ("image/jpg", b"\0" * 9, "image/jpeg")],
)
def test_image__inline__base64_with_the_type_it_has(declared: str, data: bytes, expected: str) -> None:
    (block,) = content_of(image(data_url(declared, data)))
    source = {"type": "base64", "media_type": expected, "data": base64.b64encode(data).decode()}
    assert block == {"type": "image", "source": source}


def test_image__address__left_to_the_vendor() -> None:
    request = chat_request(BUDGETS, messages=[{"role": "user", "content": [image("https://i.test/a.png")]}])
    assert ADAPTER.needs(request, credentials("anthropic")).media == ()
    (block,) = content_of(image("https://i.test/a.png", cache_control={"type": "ephemeral"}))
    assert block == {
        "type": "image",
        "source": {"type": "url", "url": "https://i.test/a.png"},
        "cache_control": {"type": "ephemeral"},
    }


def test_attachments__that_the_vendor_does_not_fetch__fetched_and_sent_along() -> None:
    plain, note = "http://i.test/a.png", "https://d.test/notes.TXT?x=1"
    content = [image(plain), document(note), document("https://d.test/report"), image(plain)]
    request = chat_request(BUDGETS, messages=[{"role": "user", "content": content}])
    assert ADAPTER.needs(request, credentials("anthropic")).media == (plain, note)
    media = {plain: Media("image/png", PNG), note: Media("text/plain", "Grüße".encode())}
    fetched = ChatRequest(request.model, False, request.body, request.fields, media=media)
    body = json.loads(ADAPTER.build_request(fetched, credentials("anthropic")).body)["messages"][0]["content"]
    assert [block["source"]["type"] for block in body] == ["base64", "text", "url", "base64"]
    assert body[1]["source"] == {"type": "text", "media_type": "text/plain", "data": "Grüße"}


def test_document__inline__pdf_or_text_with_its_title() -> None:
    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": data_url("application/pdf", PDF)}}
    (pdf, text, percent) = content_of(
        file, document(data_url("text/markdown", b"# Hi"), name="notes"), document("data:,a%20b")
    )
    assert (pdf["type"], pdf["title"], pdf["source"]["media_type"]) == ("document", "a.pdf", "application/pdf")
    assert (text["title"], text["source"]) == ("notes", {"type": "text", "media_type": "text/plain", "data": "# Hi"})
    assert percent["source"]["data"] == "a b"


@pytest.mark.parametrize(
    "part",
    [
        image(data_url("image/tiff", b"II*\0" + bytes(9))),
        document(data_url("application/msword", bytes(9))),
        document(data_url("text/plain", b"\xff\xfe\0")),
        image("data:image/png;base64"),
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "video_url", "video_url": {"url": "https://v.test"}},
        {"type": "hologram"},
    ],
)
def test_attachment__that_claude_cannot_see__refused(part: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        content_of(part)
    assert caught.value.parameter == "messages"
