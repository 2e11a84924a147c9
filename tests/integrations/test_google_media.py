"""Tests files in requests for Gemini."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from integrations.providers.base import Media
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.google import GEMINI, VERTEX
from tests.integrations.exchanges import chat_request, credentials
from tests.integrations.google_requests import (
    FLASH,
    PNG,
    PNG_URL,
    THIRD,
    built,
    parts_of,
)


class TestMedia:
    @staticmethod
    def part(url: str, kind: str = "image_url", **more: Any) -> dict[str, Any]:
        message = {"role": "user", "content": [{"type": kind, kind: {"url": url}}]}
        ((_, (part,)),) = parts_of(message, **more)
        return part

    @pytest.mark.parametrize(
        ("url", "media_type", "data"),
        [
            (PNG_URL, "image/png", PNG),
            (f"data:image/JPG;name=x;base64,{PNG}", "image/jpeg", PNG),
            ("data:,Hello%20you", "text/plain", base64.b64encode(b"Hello you").decode()),
            (f"data:image/png;base64,{PNG[:4]}%0A{PNG[4:]}", "image/png", PNG),
            ("data:image/png;base64,iVBO Rw0K\nGgo=", "image/png", PNG),
        ],
    )
    def test_data_url__any_form__inline(self, url: str, media_type: str, data: str) -> None:
        assert self.part(url) == {"inlineData": {"mimeType": media_type, "data": data}}

    @pytest.mark.parametrize("model", [THIRD, "gemini-4-argon", "gemini-pro-latest"])
    @pytest.mark.parametrize(
        ("detail", "level"),
        [
            ("low", "LOW"),
            ("medium", "MEDIUM"),
            ("high", "HIGH"),
            ("original", "ULTRA_HIGH"),
            ("auto", None),
            ("", None),
        ],
    )
    def test_detail__from_the_third_generation_on__resolution_of_the_part(
        self, model: str, detail: str, level: str | None
    ) -> None:
        picture = {"type": "image_url", "image_url": {"url": PNG_URL, "detail": detail}}
        request = built(model, messages=[{"role": "user", "content": [picture]}])
        (part,) = json.loads(request.body)["contents"][0]["parts"]
        assert part.get("mediaResolution") == ({"level": f"MEDIA_RESOLUTION_{level}"} if level else None)
        assert request.warnings == ()

    @pytest.mark.parametrize(("model", "detail"), [(FLASH, "high"), ("gemma-3-27b-it", "low"), (THIRD, "tomorrow")])
    def test_detail__that_has_no_counterpart__dropped_and_named(self, model: str, detail: str) -> None:
        picture = {"type": "image_url", "image_url": {"url": PNG_URL, "detail": detail}}
        request = built(model, messages=[{"role": "user", "content": [picture, picture]}])
        assert b"mediaResolution" not in request.body
        assert [warning.partition(":")[0] for warning in request.warnings] == ["messages.image_url.detail"]

    @pytest.mark.parametrize("url", ["data:image/png;base64,abcde", "data:image/png;base64"])
    def test_data_url__broken__refused(self, url: str) -> None:
        with pytest.raises(UnsupportedParameterError):
            self.part(url)

    def test_audio_and_file__carried_inside__inline(self) -> None:
        content = [
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
        ]
        assert parts_of({"role": "user", "content": content})[0][1] == [
            {"inlineData": {"mimeType": "audio/mp3", "data": "AAAA"}},
            {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
        ]

    @pytest.mark.parametrize(
        ("url", "kind", "media_type"),
        [
            ("https://www.youtube.com/watch?v=1", "video_url", "video/mp4"),
            ("https://youtu.be/1", "video_url", "video/mp4"),
            ("https://generativelanguage.googleapis.com/v1beta/files/1", "document_url", "application/pdf"),
            ("https://generativelanguage.googleapis.com/v1beta/files/1", "image_url", None),
            ("gs://bucket/a.PNG", "image_url", "image/png"),
        ],
    )
    @pytest.mark.parametrize("vertex", [False, True])
    def test_address__that_google_reads__by_address(
        self, url: str, kind: str, media_type: str | None, vertex: bool
    ) -> None:
        file_data = {"fileUri": url, **({"mimeType": media_type} if media_type else {})}
        assert self.part(url, kind, vertex=vertex) == {"fileData": file_data}

    def test_address__gemini_api__bytes(self) -> None:
        url = "https://example.test/a.png"
        request = chat_request(FLASH, messages=[{"role": "user", "content": [{"type": "image_url", "image_url": url}]}])
        assert GEMINI.needs(request, credentials("google")).media == (url,)
        part = self.part(url, media={url: Media("image/webp", b"abc")})
        assert part == {"inlineData": {"mimeType": "image/webp", "data": "YWJj"}}

    def test_address__not_fetched__refused(self) -> None:
        with pytest.raises(UnsupportedParameterError, match="not fetched"):
            self.part("https://example.test/a.png")

    @pytest.mark.parametrize(
        ("url", "needed"),
        [
            ("https://example.test/a.png?size=1", False),
            ("https://example.test/picture", True),
            ("http://example.test/a.png", True),
        ],
    )
    def test_address__vertex__by_address_where_its_type_shows(self, url: str, needed: bool) -> None:
        message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
        needs = VERTEX.needs(chat_request(FLASH, messages=[message]), credentials("google_vertex", project="p"))
        assert needs.media == ((url,) if needed else ())
        if not needed:
            assert self.part(url, vertex=True) == {"fileData": {"fileUri": url, "mimeType": "image/png"}}

    @pytest.mark.parametrize("typed", [{}, {"type": "fileData"}])
    def test_part__in_googles_own_words__as_it_is(self, typed: dict[str, str]) -> None:
        """The wire format requires a type of every part, which is the name of the field with its content."""
        native = {"fileData": {"fileUri": "https://youtu.be/1"}, "videoMetadata": {"startOffset": "5s"}}
        message = {"role": "user", "content": [{"type": "text", "text": "Watch."}, {**typed, **native}]}
        assert parts_of(message) == [("user", [{"text": "Watch."}, native])]
        assert not GEMINI.needs(chat_request(FLASH, messages=[message]), credentials("google")).media

    def test_needs__same_file_twice__once(self) -> None:
        part = {"type": "image_url", "image_url": {"url": "https://example.test/a.png"}}
        request = chat_request(FLASH, messages=[{"role": "user", "content": [part, part]}])
        assert len(GEMINI.needs(request, credentials("google")).media) == 1
