"""Tests errors in the form of the Messages API, as Anthropic's SDK raises them."""

from __future__ import annotations

import anthropic
import pytest

from core.errors import (
    ApplicationError,
    AuthenticationError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
    ValidationError,
)
from gateway.errors import (
    BudgetExceededError,
    GuardrailError,
    MethodNotAllowedError,
    ModelRefusalError,
    ProviderFailedError,
    ProviderUnavailableError,
    QuotaError,
    RateLimitedError,
    UnsupportedError,
)
from gateway.surfaces.messages.surface import SURFACE
from integrations.providers.errors import FailureKind, ProviderError
from tests.gateway.surfaces.messages.clients import (
    REQUEST_ID,
    ask,
    chunk,
    events_of,
    failed,
    read_stream,
    read_whole,
)

FAILURE = ProviderError("too many tokens", kind=FailureKind.CONTEXT_LENGTH, provider="openai", status=400)
CASES: list[tuple[ApplicationError, str, type[anthropic.APIStatusError]]] = [
    (ValidationError("x"), "invalid_request_error", anthropic.BadRequestError),
    (GuardrailError("x", code="pii_detected"), "invalid_request_error", anthropic.BadRequestError),
    (AuthenticationError("x"), "authentication_error", anthropic.AuthenticationError),
    (PermissionDeniedError("x"), "permission_error", anthropic.PermissionDeniedError),
    (NotFoundError("x"), "not_found_error", anthropic.NotFoundError),
    (MethodNotAllowedError("x"), "invalid_request_error", anthropic.APIStatusError),
    (RateLimitedError("x"), "rate_limit_error", anthropic.RateLimitError),
    (BudgetExceededError("x"), "billing_error", anthropic.RateLimitError),
    (ProviderFailedError("x"), "api_error", anthropic.InternalServerError),
    (ProviderUnavailableError("x"), "overloaded_error", anthropic.APIStatusError),
    (ProviderUnavailableError("x", code="provider_timeout"), "timeout_error", anthropic.APIStatusError),
    (ServiceUnavailableError("x"), "overloaded_error", anthropic.APIStatusError),
    (QuotaError("x", FAILURE), "billing_error", anthropic.APIStatusError),
]


@pytest.mark.parametrize(("error", "kind", "raised"), CASES, ids=[f"{e.status}-{e.code}" for e, _, _ in CASES])
def test_error__each_status__the_vendors_type_and_the_gateways_code(
    error: ApplicationError, kind: str, raised: type[anthropic.APIStatusError]
) -> None:
    made = failed(error)
    assert (made["type"], made["request_id"]) == ("error", REQUEST_ID)
    assert (made["error"]["type"], made["error"]["message"], made["error"]["code"]) == (kind, "x", error.code)
    with pytest.raises(raised) as caught:
        read_whole(SURFACE.error(error, REQUEST_ID), error.status)
    assert (caught.value.type, caught.value.api_message, caught.value.error_code) == (kind, "x", error.code)


def test_error__thread__in_the_code_by_which_the_vendors_sdk_goes_on_without_one() -> None:
    details = failed(UnsupportedError("thread: x", parameter="thread"))["error"]["details"]
    assert details == {"error_code": "thread_unsupported_request"}
    assert failed(UnsupportedError("container: x", parameter="container"))["error"]["details"] == {
        "error_code": "unsupported_parameter"
    }


def test_error__prompt_too_long__in_the_words_that_agents_look_for() -> None:
    made = failed(ModelRefusalError("openai: too many tokens", FAILURE, code="context_length_exceeded"))["error"]
    assert made["message"] == "prompt is too long: openai: too many tokens"
    assert made["provider_error"]["provider"] == "openai"
    own = "anthropic: prompt is too long: 9 tokens > 8 maximum"
    assert failed(ModelRefusalError(own, FAILURE, code="context_length_exceeded"))["error"]["message"] == own


def test_error__in_a_stream__one_event_that_the_sdk_raises() -> None:
    encoder = SURFACE.stream(SURFACE.read(ask(stream=True)), REQUEST_ID)
    begun = encoder.feed([chunk({"content": "Hal"})])
    frames = begun + encoder.fail(ProviderUnavailableError("openai: broke off"))
    assert events_of(frames)[-1] == failed(ProviderUnavailableError("openai: broke off"))
    with pytest.raises(anthropic.APIStatusError, match="openai: broke off") as caught:
        read_stream(frames)
    assert caught.value.type == "overloaded_error"
