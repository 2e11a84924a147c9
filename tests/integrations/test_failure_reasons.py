"""Tests the providers' error texts for a prompt that is too long, a refusing filter, an account without money, or a
credential that is not accepted; and similar texts with another meaning."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.connectivity.outcomes import Reason, reason_of
from integrations.providers.anthropic.finish import reported_failure
from integrations.providers.bedrock.failures import exception_in_stream
from integrations.providers.common.failures import failure_in_body
from integrations.providers.errors import FailureKind, ProviderError
from integrations.registry import adapter_for, providers
from tests.integrations.exchanges import chat_request, credentials
from tests.integrations.vendor_failures import (
    AZURE_FILTER,
    FAILURE_CASES,
    FILTER,
    KEY_CASES,
    LONG,
    NO_KEY_CASES,
    QUOTA,
    REFUSED,
    REJECTED,
    XAI_KEY,
    google,
    openai,
)
from tests.tables.cases import tabled


def failed(provider: str, status: int, error: Any, headers: dict[str, str] | None = None) -> ProviderError:
    body = openai(error) if isinstance(error, str) else error
    encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
    return adapter_for(provider).classify_failure(status, headers or {}, encoded)


@pytest.mark.parametrize(("provider", "status", "error_body", "kind"), FAILURE_CASES)
def test_classify_failure__text_of_the_vendor__has_its_kind(
    provider: str, status: int, error_body: Any, kind: FailureKind
) -> None:
    error = failed(provider, status, error_body)

    assert error.kind is kind
    assert (error.provider, error.status) == (provider, status)


@pytest.mark.parametrize(("provider", "status", "error_body", "kind"), FAILURE_CASES)
def test_failure_in_a_stream__text_of_the_vendor__has_its_kind(
    provider: str, status: int, error_body: Any, kind: FailureKind
) -> None:
    """An error under status 200 has no status of its own, and its text has the same meaning."""
    if kind not in (LONG, FILTER, QUOTA) or isinstance(error_body, bytes):
        return
    body = openai(error_body) if isinstance(error_body, str) else error_body

    assert failure_in_body(body, provider=provider).kind is kind


@pytest.mark.parametrize(("provider", "status", "error_body"), KEY_CASES)
def test_classify_failure__credential_that_is_not_accepted__of_the_credential_whatever_the_status(
    provider: str, status: int, error_body: Any
) -> None:
    error = failed(provider, status, error_body)

    assert (error.kind, error.status) == (REFUSED, status)
    assert not error.retryable
    assert reason_of(error) is Reason.INVALID_CREDENTIAL


@pytest.mark.parametrize(("provider", "status", "error_body"), NO_KEY_CASES)
def test_classify_failure__request_that_mentions_credentials__at_fault_itself(
    provider: str, status: int, error_body: Any
) -> None:
    error = failed(provider, status, error_body)

    assert error.kind is REJECTED
    assert reason_of(error) is Reason.REJECTED


@pytest.mark.parametrize("provider", providers())
@pytest.mark.parametrize("words", ["Invalid API key.", "API key not valid. Please pass a valid API key.", XAI_KEY])
def test_classify_failure__key_refused_with_400__of_the_credential_at_every_provider(provider: str, words: str) -> None:
    assert failed(provider, 400, {"message": words}).kind is REFUSED
    assert failed(provider, 400, {"error": {"message": f"tools[0].description: {words}"}}).kind is REJECTED


@pytest.mark.parametrize("choices", [{}, {"choices": None}, {"choices": []}], ids=["none", "null", "empty"])
def test_status_of_minimax__under_200__has_its_kind(choices: dict[str, Any]) -> None:
    adapter = adapter_for("minimax")
    answer = {
        "id": "1",
        "created": 1,
        **choices,
        "base_resp": {"status_code": 1027, "status_msg": "output new_sensitive"},
    }
    body = json.dumps(answer).encode()

    with pytest.raises(ProviderError, match="new_sensitive") as whole:
        adapter.parse_response(chat_request(), body)
    stream = adapter.stream(chat_request(stream=True))
    with pytest.raises(ProviderError, match="new_sensitive") as streamed:
        stream.feed(b"data: " + body + b"\n\ndata: [DONE]\n\n")
        stream.closing()

    assert whole.value.kind is streamed.value.kind is FILTER


@tabled
def test_exception_in_a_stream_of_bedrock__its_text__has_its_kind(name: str, message: str, kind: FailureKind) -> None:
    error = exception_in_stream(name, json.dumps({"message": message}).encode())

    assert error.kind is kind
    assert error.details == {"message": message, "type": name}


@tabled
def test_error_in_a_stream_of_anthropic__its_text__has_its_kind(type: str, message: str, kind: FailureKind) -> None:
    details = {"type": type, "message": message}

    error = reported_failure(details, provider="anthropic")

    assert (error.kind, error.details) == (kind, details)


@pytest.mark.parametrize("provider", [name for name in providers() if name != "bedrock"])
def test_classify_failure__codes_of_openai__at_every_provider(provider: str) -> None:
    for code, kind in (("context_length_exceeded", LONG), ("content_filter", FILTER), ("insufficient_quota", QUOTA)):
        status = 429 if kind is QUOTA else 400
        assert failed(provider, status, openai("No.", code)).kind is kind


def test_classify_failure__details__the_vendors_own_object() -> None:
    error = failed("azure_openai", 400, AZURE_FILTER)

    assert error.details == AZURE_FILTER["error"]
    named = failed(
        "bedrock", 400, {"message": "Input is too long"}, {"x-amzn-errortype": "ValidationException:http://a"}
    )
    assert named.details == {"message": "Input is too long", "type": "ValidationException"}
    violation = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "X", "metadata": {"service": "s"}}
    listed = google("Too much.", "INVALID_ARGUMENT", 400, violation)
    assert failed("google", 400, [listed]).details == listed["error"]
    assert failed("openai", 400, b"<html>no</html>").details is None


def test_classify_failure__secrets_in_the_details__taken_out() -> None:
    own = "0123456789abcdef0123456789abcdef"
    adapter = adapter_for("openai")
    adapter.build_request(chat_request(), credentials("openai", "https://api.openai.com/v1", own))
    body = openai(
        "No.",
        "content_filter",
        api_key="whatever",
        inner={"said": f"Bearer {own}", own: ["org-abcdefghijklmnop", {"key": "sk-abcdefghijklmnop1234"}]},
    )
    error = adapter.classify_failure(400, {}, json.dumps(body).encode())

    details = json.dumps(error.details)
    for secret in (own, "whatever", "org-abcdefghijklmnop", "sk-abcdefghijklmnop1234"):
        assert secret not in details
    for length in range(1960, 2010):
        long = openai("No.", "content_filter", inner="word " * (length // 5) + "-" * (length % 5) + own)
        assert own[:8] not in json.dumps(adapter.classify_failure(400, {}, json.dumps(long).encode()).details)
    account = failed("bedrock", 400, {"message": "no", "resource": "arn:aws:iam::123456789012:user/a"})
    assert "123456789012" not in json.dumps(account.details)
    project = failed(
        "google", 400, google("no", "INVALID_ARGUMENT", 400, {"metadata": {"consumer": "projects/123456789"}})
    )
    assert "123456789" not in json.dumps(project.details)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=4000),
        lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=200), inner, max_size=40),
        max_leaves=60,
    )
)
def test_classify_failure__any_body__a_failure_with_details_of_bounded_size(body: Any) -> None:
    for error_body in (body, {"error": body}, {"error": {"metadata": {"raw": json.dumps(body)}, "code": body}}):
        error = failed("openrouter", 400, json.dumps(error_body).encode())
        assert isinstance(error.kind, FailureKind)
        assert len(json.dumps(error.details)) < 200_000
