"""https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html and the "Errors" of Converse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.bedrock.media import PROVIDER
from integrations.providers.common.failure_reasons import UNKNOWN_KEY_CODES
from integrations.providers.common.failures import failure, failure_in_body, rephrase
from integrations.providers.errors import MODEL_REFUSALS, FailureKind, ProviderError

# The names of AWS's exceptions are more exact than the status that comes with them. They are compared in lower case,
# since the header of an answer capitalises them and a frame of a stream does not.
_KINDS = {
    "throttlingexception": FailureKind.RATE_LIMITED,
    "servicequotaexceededexception": FailureKind.RATE_LIMITED,
    "modeltimeoutexception": FailureKind.TIMEOUT,
    "modelerrorexception": FailureKind.UNAVAILABLE,
    "modelstreamerrorexception": FailureKind.UNAVAILABLE,
    "internalserverexception": FailureKind.UNAVAILABLE,
    "serviceunavailableexception": FailureKind.UNAVAILABLE,
    **dict.fromkeys(UNKNOWN_KEY_CODES, FailureKind.CREDENTIALS),
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
# The pattern matches account numbers, as in `arn:aws:iam::123456789012:user/name`.
_ACCOUNT = re.compile(r"(?<![0-9A-Za-z])\d{12}(?![0-9A-Za-z])")


def classify(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    decoded = _decoded(body)
    if "message" not in decoded and isinstance(decoded.get("Message"), str):
        body = msgspec.json.encode({"message": decoded["Message"]})
    error = failure(provider=PROVIDER, status=status, headers=headers, body=body)
    error_type = headers.get("x-amzn-errortype", "") or str(decoded.get("__type") or "")
    return _named(error, error_type)


def exception_in_stream(name: str, payload: bytes, header_message: str = "") -> ProviderError:
    """The failure behind an exception or error frame of a stream. `header_message` applies if the payload has no
    message."""
    decoded = _decoded(payload)
    message = decoded.get("message") or decoded.get("Message") or decoded.get("originalMessage") or header_message
    known = exception_name(name)
    status = _STREAM_STATUSES.get(known)
    text = message if isinstance(message, str) and message else f"bedrock ended the stream: {known}"
    return _named(failure_in_body({"message": text}, provider=PROVIDER, status=status), name)


def _named(error: ProviderError, error_type: str) -> ProviderError:
    kind = _KINDS.get(exception_name(error_type))
    if kind is not None and error.kind not in MODEL_REFUSALS:
        error.kind = kind
    name = _last_part(error_type)
    if name and error.details is not None:
        error.details = {**error.details, "type": name}
    return error


def exception_name(text: str) -> str:
    """The bare name in `ValidationException:http://internal…` (header) or `com.amazon.coral.service#AccessDenied…`
    (body)."""
    return _last_part(text).lower()


def _last_part(text: str) -> str:
    return text.partition(":")[0].rpartition("#")[2].strip()


def hide_account(error: ProviderError) -> None:
    rephrase(error, lambda text: _ACCOUNT.sub("[redacted]", text))


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return decoded if isinstance(decoded, dict) else {}
