"""Tests the addresses of requests for Gemini, and the headers with their secrets."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.google import GEMINI, VERTEX
from tests.integrations.exchanges import chat_request, credentials

MODEL = "gemini-2.5-flash"


def vertex(secret: str, base_url: str = "", *, model: str = MODEL, token: str = "", **extra: str) -> UpstreamRequest:
    request = replace(chat_request(model), access_token=token)
    return VERTEX.build_request(request, Credentials(1, "google_vertex", base_url, secret, extra))


def test_vertex__other_secrets__need_no_token() -> None:
    access = Credentials(1, "google_vertex", "", "ya29.token", {"project": "p"})
    assert not VERTEX.needs(chat_request(MODEL), access).access_token
    assert not GEMINI.needs(chat_request(MODEL), credentials("google", key="{")).access_token


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4", "publishers/meta/models/llama-4"])
def test_vertex__another_publisher__refused(model: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        vertex("ya29.t", model=model, project="p")
    assert caught.value.parameter == "model"
