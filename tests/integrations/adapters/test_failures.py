"""Tests the kind, the message and the waiting time of failures by status, and that none of them contains a secret."""

from __future__ import annotations

import json

import pytest

from integrations.providers.errors import FailureKind, ProviderError
from tests.fakes.dialects.story import Story
from tests.integrations.adapters.subject import Subject

KINDS = {
    400: FailureKind.REJECTED,
    401: FailureKind.CREDENTIALS,
    403: FailureKind.CREDENTIALS,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.UNAVAILABLE,
    413: FailureKind.CONTEXT_LENGTH,
    422: FailureKind.REJECTED,
    429: FailureKind.RATE_LIMITED,
    500: FailureKind.UNAVAILABLE,
    502: FailureKind.UNAVAILABLE,
    503: FailureKind.UNAVAILABLE,
    504: FailureKind.UNAVAILABLE,
    529: FailureKind.UNAVAILABLE,
}
KINDS_BY_TEXT = {
    "prompt is too long: 205930 tokens > 200000 maximum": FailureKind.CONTEXT_LENGTH,
    "Output blocked by content filtering policy": FailureKind.CONTENT_FILTER,
    "Your credit balance is too low": FailureKind.QUOTA,
}
PAGE = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


def failed(subject: Subject, status: int, message: str, retry_after: int | None = None) -> ProviderError:
    reply = subject.fake.failure(status, message, retry_after=retry_after)
    headers = {name.lower(): value for name, value in reply.headers.items()}
    return subject.adapter.classify_failure(reply.status, headers, reply.body)


@pytest.mark.parametrize("status", KINDS)
def test_failure__status__its_kind_and_the_providers_words(subject: Subject, status: int) -> None:
    error = failed(subject, status, "Something about max_tokens: «zu groß»")
    assert error.kind in {KINDS[status], FailureKind.TIMEOUT} if status in (408, 504) else error.kind is KINDS[status]
    assert (error.provider, error.status) == (subject.provider, status)
    assert "Something about max_tokens: «zu groß»" in error.message
    assert error.retryable is (KINDS[status] in (FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE))
    assert error.retry_after is None


@pytest.mark.parametrize("text", KINDS_BY_TEXT)
def test_failure__text_more_exact_than_the_status__kind_of_the_text_and_the_vendors_object(
    subject: Subject, text: str
) -> None:
    error = failed(subject, 400, text)
    assert error.kind is KINDS_BY_TEXT[text]
    assert not error.retryable
    assert text in json.dumps(error.details)


@pytest.mark.parametrize("status", [429, 503])
def test_failure__retry_after__in_seconds(subject: Subject, status: int) -> None:
    assert failed(subject, status, "Slow down", retry_after=7).retry_after == 7


def test_failure__rejected__has_nothing_to_wait_for(subject: Subject) -> None:
    assert failed(subject, 400, "No", retry_after=7).retry_after is None


@pytest.mark.parametrize(
    "body", [b"", PAGE, b"{}", b"[]", b"null", b"\xff\xfe\x00", b'{"error": null}', b'{"error": [1]}']
)
@pytest.mark.parametrize("status", [400, 502])
def test_failure__body_of_no_known_shape__kind_of_the_status_and_some_message(
    subject: Subject, status: int, body: bytes
) -> None:
    error = subject.adapter.classify_failure(status, {}, body)
    assert error.kind is KINDS[status]
    assert error.message
    assert "<html" not in error.message


def test_failure__message_with_the_key_in_it__redacted(subject: Subject) -> None:
    subject.build()  # Building a request makes the keys in use known to the adapter.
    secrets = subject.secrets()
    assert secrets
    for secret in secrets:
        error = failed(subject, 401, f"Incorrect API key provided: {secret}. Check https://x.test/?key={secret}")
        assert secret not in error.message
        assert secret not in str(error)
        assert secret not in repr(error)


def test_stream__error_with_the_key_in_it__redacted(reporting: Subject) -> None:
    reporting.build(stream=True)
    for secret in reporting.secrets():
        outcome = reporting.streamed(reporting.fake.stream_failure(Story(text="Hi"), f"bad key {secret}"))
        assert outcome.error is not None
        assert secret not in str(outcome.error)


@pytest.mark.parametrize("stream", [False, True])
def test_secret__of_the_integration__in_headers_only(subject: Subject, stream: bool) -> None:
    upstream = subject.build(stream=stream)
    for secret in subject.secrets():
        assert secret not in upstream.url
        assert secret.encode() not in upstream.body
        for shown in (repr(upstream), repr(subject.credentials), repr(subject.request())):
            assert secret not in shown
    assert subject.read(upstream).secret
