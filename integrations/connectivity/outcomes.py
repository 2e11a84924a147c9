from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from integrations.providers.common.failure_reasons import refuses_credential
from integrations.providers.errors import FailureKind, ProviderError


class Reason(StrEnum):
    OK = "ok"
    INVALID_CREDENTIAL = "invalid_credential"
    PERMISSION_DENIED = "permission_denied"  # The provider knows the key, and the key lacks the permission.
    QUOTA_EXHAUSTED = "quota_exhausted"  # The account has no balance, or a quota that waiting does not refill.
    RATE_LIMITED = "rate_limited"  # The provider limits the rate at the moment, which proves nothing about the key.
    NOT_FOUND = "not_found"  # The address, API version or model does not exist.
    REJECTED = "rejected"
    PROVIDER_ERROR = "provider_error"
    UNKNOWN_HOST = "unknown_host"
    PRIVATE_ADDRESS = "private_address"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TLS = "tls"
    # The redirect is never followed, since the credential belongs to the address that was entered.
    REDIRECTED = "redirected"
    UNUSABLE_ANSWER = "unusable_answer"  # The address answers, and its answer is not the provider's API.
    INCOMPLETE = "incomplete"  # The integration lacks a field that the call needs.
    UNREADABLE_SECRET = "unreadable_secret"  # noqa: S105  # stored under an encryption key that is gone


# The sentence that explains each reason; reasons that are missing here get theirs where they are found.
_SENTENCES = {
    Reason.OK: "The provider let the credential",
    Reason.INVALID_CREDENTIAL: "The provider does not accept the credential",
    Reason.PERMISSION_DENIED: "The provider knows the credential and refuses it this call",
    Reason.QUOTA_EXHAUSTED: "The account has no balance or quota left",
    Reason.RATE_LIMITED: "The provider takes no more calls at the moment; the credential was not tested",
    Reason.NOT_FOUND: "There is no such API or model at this address: check base_url and the options",
    Reason.REJECTED: "The provider takes the call for wrong",
    Reason.PROVIDER_ERROR: "The provider failed",
    Reason.REDIRECTED: "The address leads to another one, which is not followed: enter that one as base_url",
    Reason.UNUSABLE_ANSWER: "What answers there is not the provider's API: check base_url",
}


@dataclass(frozen=True, slots=True)
class ConnectionOutcome:
    """`status` is the provider's HTTP status and `latency_ms` the call's duration, both None without an answer.
    `detail` is a sentence for people without any part of the credential."""

    ok: bool
    reason: Reason
    detail: str
    status: int | None = None
    latency_ms: float | None = None


# The listed error codes and phrases of providers mean an account without money or quota, under whatever status they
# come.
_EXHAUSTED = ("insufficient_quota", "insufficient balance", "exceeded your current quota", "credit balance")
_FORBIDDEN = 403
_BY_STATUS = {
    401: Reason.INVALID_CREDENTIAL,
    402: Reason.QUOTA_EXHAUSTED,
    _FORBIDDEN: Reason.PERMISSION_DENIED,
    404: Reason.NOT_FOUND,
    405: Reason.NOT_FOUND,
    408: Reason.TIMEOUT,
    429: Reason.RATE_LIMITED,
    504: Reason.TIMEOUT,
}
_BY_KIND = {
    FailureKind.REJECTED: Reason.REJECTED,
    FailureKind.CONTEXT_LENGTH: Reason.REJECTED,
    FailureKind.CONTENT_FILTER: Reason.REJECTED,
    FailureKind.QUOTA: Reason.QUOTA_EXHAUSTED,
    FailureKind.CREDENTIALS: Reason.INVALID_CREDENTIAL,
    FailureKind.NOT_FOUND: Reason.NOT_FOUND,
    FailureKind.RATE_LIMITED: Reason.RATE_LIMITED,
    FailureKind.UNAVAILABLE: Reason.UNREACHABLE,
    FailureKind.TIMEOUT: Reason.TIMEOUT,
    FailureKind.UNUSABLE: Reason.UNUSABLE_ANSWER,
}


def reason_of(error: ProviderError, body: bytes = b"") -> Reason:
    words = f"{error.message}\n{body[:4096].decode('utf-8', 'replace')}".lower()
    status = error.status
    if error.kind is FailureKind.QUOTA or any(phrase in words for phrase in _EXHAUSTED):
        return Reason.QUOTA_EXHAUSTED
    if error.kind is FailureKind.CREDENTIALS and (
        status != _FORBIDDEN or refuses_credential(error.details, error.message)
    ):
        return Reason.INVALID_CREDENTIAL
    if status is None or status < 300:
        return _BY_KIND[error.kind]
    if 300 <= status < 400:
        return Reason.REDIRECTED
    if status >= 500:
        return _BY_STATUS.get(status, Reason.PROVIDER_ERROR)
    return _BY_STATUS.get(status, _BY_KIND[error.kind])


def explanation(reason: Reason, text: str) -> str:
    sentence = _SENTENCES.get(reason)
    if sentence is None:
        return text
    if reason is Reason.OK:
        return f"{sentence} {text}."
    return f"{sentence}: {text}" if text else f"{sentence}."
