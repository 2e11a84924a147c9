"""What can go wrong between the gateway and a provider, said without HTTP vocabulary of ours.

The pipeline turns these into statuses (design, section 5); nothing here knows the client.
"""

from __future__ import annotations

from enum import StrEnum


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
    """

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        provider: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.provider = provider
        self.status = status
        self.retry_after = retry_after

    @property
    def retryable(self) -> bool:
        return self.kind in RETRYABLE
