"""What Bedrock's exceptions mean.

https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html and the "Errors" of Converse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.bedrock.media import PROVIDER
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.failures import failure, kind_of, scrub

# Where the exception says more than the status that comes with it. Names are compared in lower case: an answer's header
# has them capitalised, a stream's frame does not.
_KINDS = {
    "throttlingexception": FailureKind.RATE_LIMITED,
    "servicequotaexceededexception": FailureKind.RATE_LIMITED,
    "modeltimeoutexception": FailureKind.TIMEOUT,
    "modelerrorexception": FailureKind.UNAVAILABLE,
    "modelstreamerrorexception": FailureKind.UNAVAILABLE,
    "internalserverexception": FailureKind.UNAVAILABLE,
    "serviceunavailableexception": FailureKind.UNAVAILABLE,
    "expiredtokenexception": FailureKind.CREDENTIALS,
    "unrecognizedclientexception": FailureKind.CREDENTIALS,
    "invalidclienttokenid": FailureKind.CREDENTIALS,
    "incompletesignature": FailureKind.CREDENTIALS,
    "incompletesignatureexception": FailureKind.CREDENTIALS,
    "invalidsignatureexception": FailureKind.CREDENTIALS,
    "missingauthenticationtokenexception": FailureKind.CREDENTIALS,
    "accessdeniedexception": FailureKind.CREDENTIALS,
    "optinrequired": FailureKind.CREDENTIALS,
}
_STREAM_STATUSES = {
    "validationexception": 400,
    "modeltimeoutexception": 408,
    "modelstreamerrorexception": 424,
    "throttlingexception": 429,
    "internalserverexception": 500,
    "serviceunavailableexception": 503,
}
# `arn:aws:iam::123456789012:user/name` and other places where an account's number stands.
_ACCOUNT = re.compile(r"(?<![0-9A-Za-z])\d{12}(?![0-9A-Za-z])")


def classify(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    decoded = _decoded(body)
    if "message" not in decoded and isinstance(decoded.get("Message"), str):
        body = msgspec.json.encode({"message": decoded["Message"]})
    error = failure(provider=PROVIDER, status=status, headers=headers, body=body)
    kind = _KINDS.get(exception_name(headers.get("x-amzn-errortype", "") or str(decoded.get("__type") or "")))
    if kind is not None:
        error.kind = kind
    return error


def exception_in_stream(name: str, payload: bytes, told: str = "") -> ProviderError:
    """The failure behind an exception or error frame of an event stream; an error frame is `told` by its headers."""
    decoded = _decoded(payload)
    message = decoded.get("message") or decoded.get("Message") or decoded.get("originalMessage") or told
    name = exception_name(name)
    status = _STREAM_STATUSES.get(name)
    kind = _KINDS.get(name) or (kind_of(status) if status else FailureKind.UNAVAILABLE)
    text = scrub(message) if isinstance(message, str) and message else f"bedrock ended the stream: {name}"
    return ProviderError(text, kind=kind, provider=PROVIDER, status=status)


def exception_name(text: str) -> str:
    """`ValidationException:http://internal…` (header) or `com.amazon.coral.service#AccessDenied…` (body)."""
    return text.partition(":")[0].rpartition("#")[2].strip().lower()


def hide_account(error: ProviderError) -> None:
    error.message = _ACCOUNT.sub("[redacted]", error.message)
    error.args = (error.message,)


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return decoded if isinstance(decoded, dict) else {}
