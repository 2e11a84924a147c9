"""What a provider's failure means: status to kind, message out of any body, secrets out of the message, wait time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from integrations.providers.errors import FailureKind, ProviderError

_MESSAGE_LENGTH = 2000

_KINDS = {
    400: FailureKind.REJECTED,
    401: FailureKind.CREDENTIALS,
    402: FailureKind.CREDENTIALS,  # DeepSeek, OpenRouter: the account has no balance; another provider may serve
    403: FailureKind.CREDENTIALS,
    404: FailureKind.NOT_FOUND,
    405: FailureKind.NOT_FOUND,
    408: FailureKind.UNAVAILABLE,
    409: FailureKind.UNAVAILABLE,
    413: FailureKind.REJECTED,
    422: FailureKind.REJECTED,
    425: FailureKind.UNAVAILABLE,
    429: FailureKind.RATE_LIMITED,
}

# What stands in place of a status in an error under a 200, as `code` or `type`
# (https://platform.openai.com/docs/guides/error-codes, and as recorded of Azure, Cerebras and Groq).
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
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests_error": 429,
    "request_quota_exceeded": 429,
    "RateLimitReached": 429,
    "overloaded_error": 529,
    # Mistral's
    "invalid_function_call": 400,
    "invalid_request_message_order": 400,
    "unauthorized": 401,
    "invalid_model": 404,
    "rate_limited": 429,
    "service_tier_capacity_exceeded": 429,
}

# Keys as providers write them, and anything in a place where keys travel.
_SECRETS = re.compile(
    r"""(?ix)
    \b(?:sk|pk|gsk|xai|csk|pplx|r8|hf|fw|tgp_v1|svc|key|AIza|AKIA|ASIA|nvapi)[-_]?[A-Za-z0-9*_\-]{10,}
    | \bBearer\s+[^\s"',;]+
    | (?<=[?&])(?:api[-_]?key|key|access[-_]?token|token|sig|signature|x-amz-[a-z-]+)=[^&\s"']+
    | \b(?:org|proj|user|acct)[-_][A-Za-z0-9]{10,}
    """
)
_SHOWN_KEY = re.compile(r"(?i)(api[ _-]?key(?: provided)?\s*:\s*)([^\s\"',]+)")


def kind_of(status: int) -> FailureKind:
    if status in _KINDS:
        return _KINDS[status]
    if 400 <= status < 500:
        return FailureKind.REJECTED
    # A redirect is never followed: the address is wrong or the service has moved.
    return FailureKind.UNAVAILABLE


def scrub(text: str, *secrets: str) -> str:
    """`text` without keys and account ids. `secrets` are the integration's own, removed wherever they stand."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "[redacted]")
    text = _SECRETS.sub("[redacted]", text)
    return _SHOWN_KEY.sub(r"\1[redacted]", text)


def redact(error: ProviderError, secrets: tuple[str, ...]) -> None:
    """Takes the integrations' own secrets out of an error: a provider may echo a key of any form."""
    error.message = scrub(error.message, *secrets)
    error.args = (error.message,)


def error_message(body: bytes) -> str:
    """The message in an error body, JSON of any known shape or text; empty when there is none."""
    try:
        return message_in(msgspec.json.decode(body))
    except RecursionError:
        return ""
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body[:_MESSAGE_LENGTH].decode("utf-8", "replace").strip()
        # A proxy's HTML page says nothing to the client but its status.
        return "" if text.startswith("<") else text


def message_in(decoded: Any) -> str:
    """Shapes: `{"error": {"message"}}`, `{"error": "…"}` (xAI, Ollama), `{"message"}` (Mistral, Cerebras),
    `{"detail": "…" | [{"loc", "msg"}]}` (Mistral), `{"errors": […]}`, a list of any of these (Google)."""
    if isinstance(decoded, str):
        return decoded[:_MESSAGE_LENGTH]
    if isinstance(decoded, list):
        return "; ".join(filter(None, (message_in(item) for item in decoded[:5])))[:_MESSAGE_LENGTH]
    if not isinstance(decoded, dict):
        return ""
    if isinstance(decoded.get("msg"), str):
        place = ".".join(str(part) for part in decoded.get("loc") or [] if not isinstance(part, (dict, list)))
        return f"{place}: {decoded['msg']}" if place else str(decoded["msg"])
    message = next(
        (found for name in ("error", "message", "detail", "errors") if (found := message_in(decoded.get(name)))), ""
    )
    return _with_upstream_detail(message, decoded)


def _with_upstream_detail(message: str, decoded: dict[str, Any]) -> str:
    """OpenRouter says "Provider returned error" and keeps the reason in `metadata.raw`
    (https://openrouter.ai/docs/api-reference/errors)."""
    metadata = decoded.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f"{message}: {raw}"[:_MESSAGE_LENGTH] if message and isinstance(raw, str) and raw else message


def retry_after_seconds(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Seconds to wait, from `retry-after-ms`, `retry-after` (seconds or HTTP date) or exhausted `x-ratelimit-*`."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    if (seconds := _number(value)) is not None:
        return seconds
    if value and (date := _http_date(value)) is not None:
        return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())
    waits = [
        wait
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}", "").strip() == "0"
        and (wait := _duration(headers.get(f"x-ratelimit-reset-{what}", ""))) is not None
    ]
    return max(waits) if waits else None


def failure(
    *,
    provider: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
) -> ProviderError:
    """The error behind a non-2xx answer. A message that the provider did not give is made from the status."""
    kind = kind_of(status)
    message = scrub(error_message(body)) or f"{provider} answered with status {status}"
    retry_after = retry_after_seconds(headers) if kind in (FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE) else None
    return ProviderError(message, kind=kind, provider=provider, status=status, retry_after=retry_after)


def failure_in_body(decoded: Any, *, provider: str) -> ProviderError:
    """The error that a 200 body or stream event carries (`error`, or a bare `{"message", "code"}`)."""
    status = _status_in(decoded)
    message = scrub(message_in(decoded)) or f"{provider} reported an error without a message"
    kind = kind_of(status) if status else FailureKind.UNAVAILABLE
    return ProviderError(message, kind=kind, provider=provider, status=status)


def _status_in(decoded: Any) -> int | None:
    """An HTTP status in an error object: OpenRouter's `code`, Groq's `status_code`, Mistral's `raw_status_code`,
    others' `status`."""
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


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < 1e9 else None


def _http_date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _duration(value: str) -> float | None:
    """`1m11.38s`, `5ms`, `12` (seconds)."""
    value = value.strip()
    if (seconds := _number(value)) is not None:
        return seconds
    if not re.fullmatch(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+", value):
        return None
    return sum(float(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", value))
