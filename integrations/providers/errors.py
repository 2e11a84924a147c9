"""What can go wrong between the gateway and a provider, said without HTTP vocabulary of ours.

The pipeline turns these into statuses (design, section 5); nothing here knows the client.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from integrations.providers.base import Usage


class FailureKind(StrEnum):
    """How a failed attempt is treated: what may follow it and which status the client finally sees."""

    REJECTED = "rejected"  # 400, 413, 422: the request is at fault; the same everywhere, never retried or failed over
    CREDENTIALS = "credentials"  # 401, 403: this provider's credentials are at fault; another provider may serve
    NOT_FOUND = "not_found"  # 404: model or deployment unknown there; another provider may serve
    RATE_LIMITED = "rate_limited"  # 429: retry after `retry_after`, or fail over
    UNAVAILABLE = "unavailable"  # 408, 5xx, 529, connection failures: retry, then fail over
    TIMEOUT = "timeout"  # no answer in time: retry, then fail over
    UNUSABLE = "unusable"  # 2xx whose body or stream cannot be read: fail over, else 500 provider_error


RETRYABLE = frozenset({FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE, FailureKind.TIMEOUT})


class ProviderError(Exception):
    """One attempt failed. `message` holds no secret and may be shown to the client.

    `status` is the provider's HTTP status, or None when there was no answer. `retry_after` is in seconds.
    `usage` is what the failed attempt has consumed, when the provider said so before it failed: it will be billed.
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
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.provider = provider
        self.status = status
        self.retry_after = retry_after
        self.usage = usage

    @property
    def retryable(self) -> bool:
        return self.kind in RETRYABLE


class UnsupportedParameterError(ProviderError):
    """The provider has no place for `parameter`, and without it the answer would differ in kind."""

    def __init__(self, parameter: str, problem: str, *, provider: str = "") -> None:
        super().__init__(f"{parameter}: {problem}", kind=FailureKind.REJECTED, provider=provider)
        self.parameter = parameter
