"""The failures between the gateway and a provider, which the pipeline turns into HTTP statuses
(docs/routing.md#errors-of-providers)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from integrations.providers.usage import Usage


class FailureKind(StrEnum):
    """The kind of a failed attempt decides what may follow it and which status the client finally gets."""

    # The provider answered 400 or 422: the request is at fault at every provider, so it is never retried or failed
    # over.
    REJECTED = "rejected"
    # The prompt is too long for the model, or the vendor's filter refuses its text; only another model may serve it.
    CONTEXT_LENGTH = "context_length_exceeded"
    CONTENT_FILTER = "content_filter"
    # The provider answered 402 or similar: the account has no money or quota left, which waiting does not refill;
    # another account may serve.
    QUOTA = "insufficient_quota"
    # The provider answered 401 or 403, or said under another status that it does not accept the credential: another
    # provider may serve.
    CREDENTIALS = "credentials"
    # The provider answered 404: the model or deployment is unknown there; another provider may serve.
    NOT_FOUND = "not_found"
    # The provider answered 429: the request is retried after `retry_after`, or fails over.
    RATE_LIMITED = "rate_limited"
    # The provider answered 408, 5xx or 529, or the connection failed: the request is retried, then fails over.
    UNAVAILABLE = "unavailable"
    TIMEOUT = "timeout"  # No answer came in time: the request is retried, then fails over.
    # A 2xx answer whose body or stream cannot be read, or holds no answer: the request fails over (in the latter case
    # after a retry), else the client gets 500.
    UNUSABLE = "unusable"


RETRYABLE = frozenset({FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE, FailureKind.TIMEOUT})
MODEL_REFUSALS = frozenset({FailureKind.CONTEXT_LENGTH, FailureKind.CONTENT_FILTER})
"""The kinds for which one model refuses a request and another may accept it."""
REQUEST_REFUSALS = MODEL_REFUSALS | {FailureKind.REJECTED}
"""The kinds that prove nothing about the provider's health."""


class ProviderError(Exception):
    """One failed attempt.

    `message` holds no secret and may be shown to the client. `status` is the provider's HTTP status, None without an
    answer. `retry_after` is in seconds. `usage` is what the provider reported before the failure: it is billed.
    `details` is the vendor's own error object, without secrets and of bounded size. `is_failed_generation`: the model
    gave no answer, and may give one when asked again.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        provider: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        usage: Usage | None = None,
        details: Mapping[str, Any] | None = None,
        is_failed_generation: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.provider = provider
        self.status = status
        self.retry_after = retry_after
        self.usage = usage
        self.details = details
        self.is_failed_generation = is_failed_generation

    @property
    def retryable(self) -> bool:
        return self.is_failed_generation or self.kind in RETRYABLE


class NotAStreamError(ProviderError):
    """A JSON object came in place of a stream, and reports no error: `body` may be a whole answer."""

    def __init__(self, message: str, *, provider: str, body: bytes) -> None:
        super().__init__(message, kind=FailureKind.UNUSABLE, provider=provider, status=200)
        self.body = body


def incomplete(problem: str, provider: str) -> ProviderError:
    """Returns the failure of an integration that lacks what every request needs."""
    return ProviderError(problem, kind=FailureKind.CREDENTIALS, provider=provider)


def no_role(provider: str) -> ProviderError:
    return incomplete("the role of the gateway's machine gives no key, or the operator does not allow it", provider)


def unusable(
    message: str, provider: str, *, usage: Usage | None = None, is_failed_generation: bool = False
) -> ProviderError:
    return ProviderError(
        message,
        kind=FailureKind.UNUSABLE,
        provider=provider,
        status=200,
        usage=usage,
        is_failed_generation=is_failed_generation,
    )


class UnsupportedParameterError(ProviderError):
    """The provider has no place for `parameter`, and without it the answer would differ in kind."""

    def __init__(self, parameter: str, problem: str, *, provider: str = "") -> None:
        super().__init__(f"{parameter}: {problem}", kind=FailureKind.REJECTED, provider=provider)
        self.parameter = parameter
