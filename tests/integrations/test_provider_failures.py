from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import pytest

from integrations.providers.common.failures import error_message, retry_after_seconds
from integrations.providers.common.redaction import scrub
from integrations.providers.errors import ProviderError
from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, credentials
from tests.tables.cases import tabled


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"m","code":1}}', "m"),
        (b'{"error":"m","code":"c"}', "m"),
        (b'{"object":"error","message":"m"}', "m"),
        (b'{"detail":"m"}', "m"),
        (b'{"detail":[{"loc":["body","messages",0],"msg":"m"}]}', "body.messages.0: m"),
        (b'{"errors":[{"message":"m"},{"message":"n"}]}', "m; n"),
        (b'[{"error":{"message":"m"}}]', "m"),
        (b'{"error":{"message":"m","metadata":{"raw":"why"}}}', "m: why"),
        (b"plain text\n", "plain text"),
        (b"<html><body>502</body></html>", ""),
        (gzip.compress(b'{"error": {"message": "max_tokens is too large"}}'), ""),
        (b"two\r\nlines\tof text", "two\r\nlines\tof text"),
        (b"", ""),
        (b"null", ""),
        (b"[" * 100_000, ""),
        (b'{"error":' * 900 + b'"m"' + b"}" * 900, ""),
        (b'{"error":{"code":7}}', ""),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_error_message__any_shape__the_message(body: bytes, message: str) -> None:
    assert error_message(body) == message


def test_scrub__own_secret_of_any_form__taken_out() -> None:
    assert scrub("key 0123abcd was refused", "0123abcd") == "key [redacted] was refused"
    assert scrub("the model gpt-4o-mini does not exist") == "the model gpt-4o-mini does not exist"


def test_every_failure__own_key_without_a_known_form__taken_out() -> None:
    secret = "0123456789abcdef0123456789abcdef"
    adapter = adapter_for("azure_openai")
    adapter.build_request(chat_request(), credentials("azure_openai", "https://res.openai.azure.com", secret))
    body = json.dumps({"error": {"message": f"subscription {secret} is unknown", "code": 401}}).encode()
    stream = adapter.stream(chat_request(stream=True))
    errors = [adapter.classify_failure(401, {}, body)]
    with pytest.raises(ProviderError) as caught:
        adapter.parse_response(chat_request(), body)
    errors.append(caught.value)
    with pytest.raises(ProviderError) as caught:
        stream.feed(b"data: " + body + b"\n\n")
    errors.append(caught.value)
    for error in errors:
        assert str(error) == error.message == "subscription [redacted] is unknown"


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@tabled
def test_retry_after__every_form__seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers, now=NOW) == seconds
