from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from integrations.providers.common.failure_reasons import reason_in
from integrations.providers.common.redaction import details_of, rewritten, scrub
from integrations.providers.common.retry_after import retry_after_seconds, wait_in_message
from integrations.providers.errors import FailureKind, ProviderError

__all__ = [
    "error_message",
    "failure",
    "failure_in_body",
    "is_status_alone",
    "kind_of",
    "message_in",
    "redact",
    "rephrase",
    "retry_after_seconds",
]

_MESSAGE_LENGTH = 2000
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")

_KINDS = {
    400: FailureKind.REJECTED,
    401: FailureKind.CREDENTIALS,
    402: FailureKind.QUOTA,
    403: FailureKind.CREDENTIALS,
    404: FailureKind.NOT_FOUND,
    405: FailureKind.NOT_FOUND,
    408: FailureKind.UNAVAILABLE,
    409: FailureKind.UNAVAILABLE,
    413: FailureKind.CONTEXT_LENGTH,
    422: FailureKind.REJECTED,
    425: FailureKind.UNAVAILABLE,
    429: FailureKind.RATE_LIMITED,
}

# An error under status 200 has an error code of this mapping as `code` or `type` in place of a status
# (https://platform.openai.com/docs/guides/error-codes, and as recorded at Azure, Cerebras and Groq).
_STATUSES = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "string_above_max_length": 400,
    "content_filter": 400,
    "invalid_prompt": 400,
    "tool_use_failed": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "insufficient_quota": 429,
    "exceeded_current_quota_error": 429,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests_error": 429,
    "request_quota_exceeded": 429,
    "RateLimitReached": 429,
    "overloaded_error": 529,
    # Mistral sends this code.
    "invalid_function_call": 400,
    "invalid_request_message_order": 400,
    "unauthorized": 401,
    "invalid_model": 404,
    "rate_limited": 429,
    "service_tier_capacity_exceeded": 429,
}


def kind_of(status: int) -> FailureKind:
    if status in _KINDS:
        return _KINDS[status]
    if 400 <= status < 500:
        return FailureKind.REJECTED
    # A redirect is never followed: the address is wrong or the service has moved.
    return FailureKind.UNAVAILABLE


def redact(error: ProviderError, secrets: tuple[str, ...]) -> None:
    """Removes the integration's secrets from an error; a provider may echo a key of any form."""
    rephrase(error, lambda text: scrub(text, *secrets))


def rephrase(error: ProviderError, change: Callable[[str], str]) -> None:
    error.message = change(error.message)
    error.args = (error.message,)
    if error.details is not None:
        error.details = rewritten(error.details, change)


def error_message(body: bytes) -> str:
    return _read(body)[1]


def _read(body: bytes) -> tuple[Any, str]:
    try:
        decoded = msgspec.json.decode(body)
        return decoded, message_in(decoded)
    except RecursionError:
        return None, ""
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body[:_MESSAGE_LENGTH].decode("utf-8", "replace").strip()
        # A proxy's HTML page has no useful text for the client, nor has what is no text at all (a compressed body whose
        # headers do not say so), so only the status is used.
        return None, "" if text.startswith("<") or _NO_TEXT.search(text) else text


def message_in(decoded: Any) -> str:
    """Reads `{"error": {"message"}}`, `{"error": "…"}` (xAI, Ollama), `{"message"}` (Mistral, Cerebras), `{"detail":
    "…" | [{"loc", "msg"}]}` (Mistral), `{"errors": […]}`, a list of any of these (Google), and `{"base_resp":
    {"status_msg"}}` (MiniMax)."""
    if isinstance(decoded, str):
        return decoded[:_MESSAGE_LENGTH]
    if isinstance(decoded, list):
        return "; ".join(filter(None, (message_in(item) for item in decoded[:5])))[:_MESSAGE_LENGTH]
    if not isinstance(decoded, dict):
        return ""
    if isinstance(decoded.get("msg"), str):
        place = ".".join(str(part) for part in decoded.get("loc") or [] if not isinstance(part, (dict, list)))
        return f"{place}: {decoded['msg']}" if place else str(decoded["msg"])
    message = next((found for name in _MESSAGE_FIELDS if (found := message_in(decoded.get(name)))), "")
    return _with_upstream_detail(message, decoded)


_MESSAGE_FIELDS = ("error", "message", "detail", "errors", "base_resp", "status_msg")


def is_status_alone(fields: Mapping[str, Any]) -> bool:
    """MiniMax reports failures under status 200: no choice, and a status of its own that is not 0
    (https://platform.minimax.io/docs/api-reference/errorcode)."""
    status = fields.get("base_resp")
    return isinstance(status, Mapping) and bool(status.get("status_code")) and not fields.get("choices")


def _with_upstream_detail(message: str, decoded: dict[str, Any]) -> str:
    """Adds the vendor's reason from `metadata.raw`: OpenRouter's own message is only "Provider returned error"
    (https://openrouter.ai/docs/api-reference/errors)."""
    metadata = decoded.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f"{message}: {raw}"[:_MESSAGE_LENGTH] if message and isinstance(raw, str) and raw else message


def failure(
    *,
    provider: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
) -> ProviderError:
    """The error of a non-2xx answer. Without a message of the provider, one is made from the status."""
    decoded, message = _read(body)
    message = message or f"{provider} answered with status {status}"
    error = _error(decoded, message, status, kind_of(status), provider=provider)
    if error.kind in _WAITING and (wait := retry_after_seconds(headers)) is not None:
        error.retry_after = wait
    return error


def failure_in_body(decoded: Any, *, provider: str, status: int | None = None) -> ProviderError:
    """The error in a 200 body or stream event (`error`, or a bare `{"message", "code"}`). `status` is the one that the
    vendor's code or name of the error stands for, if known."""
    status = _status_in(decoded) if status is None else status
    kind = kind_of(status) if status else FailureKind.UNAVAILABLE
    message = message_in(decoded) or f"{provider} reported an error without a message"
    return _error(decoded, message, status, kind, provider=provider)


_WAITING = (FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE, FailureKind.QUOTA)


def _error(decoded: Any, message: str, status: int | None, kind: FailureKind, *, provider: str) -> ProviderError:
    kind = reason_in(decoded, message, status, provider=provider) or kind
    return ProviderError(
        scrub(message),
        kind=kind,
        provider=provider,
        status=status,
        retry_after=wait_in_message(decoded, message) if kind in _WAITING else None,
        details=details_of(_error_object(decoded)),
    )


def _error_object(decoded: Any) -> Any:
    """`error` if that is an object, else the whole body (Mistral, Cohere, Bedrock, and xAI, whose `error` is a
    text).
    """
    if isinstance(decoded, list):
        decoded = decoded[0] if decoded else None
    error = decoded.get("error") if isinstance(decoded, dict) else None
    return error if isinstance(error, dict) else decoded


def _status_in(decoded: Any) -> int | None:
    if not isinstance(decoded, dict):
        return None
    error = decoded.get("error")
    fields = error if isinstance(error, dict) else decoded
    for name in ("code", "raw_status_code", "status_code", "status"):
        value = fields.get(name)
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return next((status for name in ("code", "type") if (status := _STATUSES.get(str(fields.get(name) or "")))), None)
