from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from integrations.providers.common.failures import error_message, retry_after_seconds
from integrations.providers.common.redaction import scrub
from integrations.providers.errors import FailureKind, ProviderError
from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, credentials


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, FailureKind.REJECTED),
        (401, FailureKind.CREDENTIALS),
        (402, FailureKind.QUOTA),
        (403, FailureKind.CREDENTIALS),
        (404, FailureKind.NOT_FOUND),
        (408, FailureKind.UNAVAILABLE),
        (413, FailureKind.CONTEXT_LENGTH),
        (422, FailureKind.REJECTED),
        (429, FailureKind.RATE_LIMITED),
        (500, FailureKind.UNAVAILABLE),
        (503, FailureKind.UNAVAILABLE),
        (529, FailureKind.UNAVAILABLE),
        (302, FailureKind.UNAVAILABLE),
    ],
)
def test_classify_failure__status__kind(status: int, kind: FailureKind) -> None:
    error = adapter_for("groq").classify_failure(status, {}, b"")
    assert (error.kind, error.status, error.provider) == (kind, status, "groq")
    assert error.message == f"groq answered with status {status}"


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


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefghijklmnop1234",
        "sk-proj-AbC_123-xyzxyzxyz",
        "sk-ant-api03-abcdefghijkl",
        "gsk_abcdefghijklmnop",
        "xai-abcdefghijklmnop",
        "AIzaSyA1234567890abcdefg",
        "AKIAIOSFODNN7EXAMPLE",
        "org-abcdefghijklmnop",
    ],
)
def test_classify_failure__key_in_the_message__taken_out(secret: str) -> None:
    bodies = [
        f"Incorrect API key provided: {secret}. Try again",
        f"GET /v1?key={secret}&x=1",
        f"Bearer {secret} is bad",
    ]
    for text in bodies:
        error = adapter_for("openai").classify_failure(401, {}, json.dumps({"error": {"message": text}}).encode())
        assert secret not in error.message
        assert secret not in str(error)
        assert "[redacted]" in error.message


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


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "6"}, 6.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=90), usegmt=True)}, 0.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m11.5s"}, 71.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "5ms"}, 0.005),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "8s"}, None),
        ({"retry-after": "2026-01-01T00:01:30Z"}, 90.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "30"}, 30.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW.timestamp()) + 90)}, 90.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str((int(NOW.timestamp()) + 90) * 1000)}, 90.0),
        ({"x-ratelimit-remaining-tokens-minute": "0", "x-ratelimit-reset-tokens-minute": "12.5"}, 12.5),
        ({"ratelimitbysize-remaining": "0", "ratelimitbysize-reset": "31"}, 31.0),
        (
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:20Z",
                "anthropic-ratelimit-requests-remaining": "7",
                "anthropic-ratelimit-requests-reset": "2026-01-01T01:00:00Z",
            },
            20.0,
        ),
        ({"ratelimit": '"api";r=0;t=55'}, 55.0),
        ({"ratelimit": '"api";r=3;t=55'}, None),
        ({"x-ratelimit-reset-tokens": "8s"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9" * 400}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 +99999999999999999999"}, None),
        ({}, None),
    ],
)
def test_retry_after__every_form__seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers, now=NOW) == seconds


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached. Please try again in 5.89s. Need more tokens?", 5.89),
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 1m30s.", 90.0),
        ("Please retry after 10 seconds.", 10.0),
        ("Please retry in 17.5s.", 17.5),
        ("Try again in 2 minutes", 120.0),
        ("Please wait before trying again.", None),
        ("Please try again in 3 models", None),
        ("Please try again later", None),
    ],
)
def test_classify_failure__wait_in_words__seconds(message: str, seconds: float | None) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    assert adapter_for("groq").classify_failure(429, {}, body).retry_after == seconds
    assert adapter_for("groq").classify_failure(400, {}, body).retry_after is None
    assert adapter_for("groq").classify_failure(429, {"retry-after": "3"}, body).retry_after == 3.0


def test_classify_failure__headers_that_openrouter_passes_on__seconds() -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "33"}
    body = {"error": {"code": 429, "message": "Rate limit exceeded", "metadata": {"headers": headers}}}
    assert adapter_for("openrouter").classify_failure(429, {}, json.dumps(body).encode()).retry_after == 33.0
