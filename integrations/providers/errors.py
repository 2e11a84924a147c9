"""The failures between the gateway and a provider, without the gateway's own HTTP statuses.

The pipeline turns these into statuses (docs/routing.md#what-the-client-is-told); nothing here knows the client.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from integrations.providers.usage import Usage


class FailureKind(StrEnum):
    """The kind of a failed attempt, which decides what may follow it and which status the client finally sees."""

    REJECTED = "rejected"  # 400, 422: the request is at fault; the same everywhere, never retried or failed over
    # The model takes no prompt so long, or its vendor's filter no such text: only another model may serve.
    CONTEXT_LENGTH = "context_length_exceeded"
    CONTENT_FILTER = "content_filter"
    # 402 and others: the account has no money or quota left, which no waiting refills; another account may serve.
    QUOTA = "insufficient_quota"
    CREDENTIALS = "credentials"  # 401, 403: this provider's credentials are at fault; another provider may serve
    NOT_FOUND = "not_found"  # 404: model or deployment unknown there; another provider may serve
    RATE_LIMITED = "rate_limited"  # 429: retry after `retry_after`, or fail over
    UNAVAILABLE = "unavailable"  # 408, 5xx, 529, connection failures: retry, then fail over
    TIMEOUT = "timeout"  # no answer in time: retry, then fail over
    # 2xx whose body or stream cannot be read, or is no answer: fail over (the latter after a retry), else 500.
    UNUSABLE = "unusable"


RETRYABLE = frozenset({FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE, FailureKind.TIMEOUT})
OF_THE_MODEL = frozenset({FailureKind.CONTEXT_LENGTH, FailureKind.CONTENT_FILTER})
"""What a request is refused for by one model, and perhaps not by another."""
OF_THE_REQUEST = OF_THE_MODEL | {FailureKind.REJECTED}
"""What says nothing about how the provider does."""


class ProviderError(Exception):
    """One attempt failed. `message` holds no secret and may be shown to the client.

    `status` is the provider's HTTP status, or None when there was no answer. `retry_after` is in seconds.
    `usage` is what the failed attempt has consumed, when the provider said so before it failed: it will be billed.
    `details` is the vendor's own error object, as far as it has one, without secrets and of bounded size.
    `is_botched`: the model came to no answer, and may come to one when it is asked again.
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
        is_botched: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.provider = provider
        self.status = status
        self.retry_after = retry_after
        self.usage = usage
        self.details = details
        self.is_botched = is_botched

    @property
    def retryable(self) -> bool:
        return self.is_botched or self.kind in RETRYABLE


class UnsupportedParameterError(ProviderError):
    """The provider has no place for `parameter`, and without it the answer would differ in kind."""

    def __init__(self, parameter: str, problem: str, *, provider: str = "") -> None:
        super().__init__(f"{parameter}: {problem}", kind=FailureKind.REJECTED, provider=provider)
        self.parameter = parameter
