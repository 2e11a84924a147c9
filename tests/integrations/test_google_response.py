"""Tests the translation of Gemini's whole answers and failures."""

from __future__ import annotations

from typing import Any

from integrations.providers.errors import ProviderError
from integrations.providers.google import GEMINI, VERTEX
from tests.integrations.exchanges import chat_request, credentials
from tests.integrations.google_exchanges import body


class TestFailures:
    @staticmethod
    def failure(status: int, error: Any, headers: dict[str, str] | None = None) -> ProviderError:
        return VERTEX.classify_failure(status, headers or {}, body(error))

    def test_message__holds_no_keys_and_no_account_numbers(self) -> None:
        access = credentials("google", key="AIzaSyD-a-very-secret-key-0123456789")
        GEMINI.build_request(chat_request("gemini-2.5-flash"), access)
        message = f"API key {access.secret} not valid for projects/123456789012 or project_number:123456789012."
        error = GEMINI.classify_failure(400, {}, body({"error": {"message": message}}))
        assert error.message == "API key [redacted] not valid for projects/[redacted] or project_number:[redacted]."
        assert str(error) == error.message
