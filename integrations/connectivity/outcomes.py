"""The outcome of an integration's test, as a reason that a person can act on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from integrations.providers.errors import FailureKind, ProviderError


class Reason(StrEnum):
    """Each says where to look: at the credential, the account, the address, the network or the provider."""

    OK = "ok"
    INVALID_CREDENTIAL = "invalid_credential"
    PERMISSION_DENIED = "permission_denied"  # the provider knows the key, which may not do this
    QUOTA_EXHAUSTED = "quota_exhausted"  # no balance, or a quota that waiting does not refill
    RATE_LIMITED = "rate_limited"  # too much at the moment: says nothing about the key
    NOT_FOUND = "not_found"  # the address, API version or model is not there
    REJECTED = "rejected"
    PROVIDER_ERROR = "provider_error"
    UNKNOWN_HOST = "unknown_host"
    PRIVATE_ADDRESS = "private_address"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TLS = "tls"
    REDIRECTED = "redirected"  # never followed: the credential is for the address that was named
    UNUSABLE_ANSWER = "unusable_answer"  # something answers that is not the provider's API
    INCOMPLETE = "incomplete"  # the integration lacks what a call needs
    UNREADABLE_SECRET = "unreadable_secret"  # noqa: S105  # stored under an encryption key that is gone


# What is said about each; those that are missing are said in full by whoever found them.
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
class Outcome:
    """`status` is the provider's, None without an answer; `latency_ms` is how long the call took, None without one.

    `detail` is a sentence for people and holds no part of the credential.
    """

    ok: bool
    reason: Reason
    detail: str
    status: int | None = None
    latency_ms: float | None = None


# What providers call an account without money or quota, under whatever status.
_EXHAUSTED = ("insufficient_quota", "insufficient balance", "exceeded your current quota", "credit balance")
# How providers call a key that they do not know where the status alone does not tell: Google and xAI answer 400,
# AWS 403.
_UNKNOWN_KEYS = (
    "api key not valid",
    "api_key_invalid",
    "incorrect api key",
    "invalid api key",
    "security token included in the request is invalid",
    "security token included in the request is expired",
    "signature we calculated does not match",
)

_BY_STATUS = {
    401: Reason.INVALID_CREDENTIAL,
    402: Reason.QUOTA_EXHAUSTED,
    403: Reason.PERMISSION_DENIED,
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
    """Returns the reason behind a provider's refusal, read from its words where they say more than its status, else
    from the status, else from the kind of failure."""
    words = f"{error.message}\n{body[:4096].decode('utf-8', 'replace')}".lower()
    status = error.status
    if error.kind is FailureKind.QUOTA or any(phrase in words for phrase in _EXHAUSTED):
        return Reason.QUOTA_EXHAUSTED
    if status in (400, 401, 403) and any(phrase in words for phrase in _UNKNOWN_KEYS):
        return Reason.INVALID_CREDENTIAL
    if status is None or status < 300:
        return _BY_KIND[error.kind]
    if 300 <= status < 400:
        return Reason.REDIRECTED
    if status >= 500:
        return _BY_STATUS.get(status, Reason.PROVIDER_ERROR)
    return _BY_STATUS.get(status, _BY_KIND[error.kind])


def explained(reason: Reason, said: str) -> str:
    """`said` is what the call allowed for OK, else what the provider or the network said."""
    sentence = _SENTENCES.get(reason)
    if sentence is None:
        return said
    if reason is Reason.OK:
        return f"{sentence} {said}."
    return f"{sentence}: {said}" if said else f"{sentence}."
