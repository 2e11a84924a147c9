"""Google's failures are `{"error": {code, message, status, details}}`, sometimes in a list
(https://cloud.google.com/apis/design/errors)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from integrations.providers.common.failures import failure, failure_in_body, rephrase
from integrations.providers.errors import FailureKind, ProviderError

_CANCELLED = 499
# The pattern matches the number of the integration's Cloud project, an account id that Google's messages quote.
_PROJECT = re.compile(r"\b(projects?[/ ]|project_number:)['\"]?\d{6,}", re.IGNORECASE)
_TOKEN = re.compile(r"\bya29\.[\w.-]+")
_WAITING = (FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE)


def google_failure(*, provider: str, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    error = failure(provider=provider, status=status, headers=headers, body=body)
    if status == _CANCELLED:
        error.kind = FailureKind.UNAVAILABLE
    if error.retry_after is None and error.kind in _WAITING:
        error.retry_after = _retry_delay(body)
    _hide_accounts(error)
    return error


def google_failure_in_body(decoded: Any, *, provider: str) -> ProviderError:
    error = failure_in_body(decoded, provider=provider)
    if error.status == _CANCELLED:
        error.kind = FailureKind.UNAVAILABLE
    if error.kind in _WAITING:
        error.retry_after = _delay_in(decoded)
    _hide_accounts(error)
    return error


def _hide_accounts(error: ProviderError) -> None:
    rephrase(error, lambda text: _TOKEN.sub("[redacted]", _PROJECT.sub(r"\1[redacted]", text)))


def _retry_delay(body: bytes) -> float | None:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return _delay_in(decoded)


def _delay_in(decoded: Any) -> float | None:
    """The seconds of `RetryInfo` in the details (https://cloud.google.com/apis/design/errors#retry_info)."""
    delays = [delay for detail in _details(decoded) if (delay := _seconds(detail.get("retryDelay"))) is not None]
    return max(delays, default=None)


def _details(decoded: Any) -> Iterator[Mapping[str, Any]]:
    for item in decoded if isinstance(decoded, list) else [decoded]:
        error = item.get("error") if isinstance(item, Mapping) else None
        details = error.get("details") if isinstance(error, Mapping) else None
        if isinstance(details, list):
            yield from (detail for detail in details if isinstance(detail, Mapping))


def _seconds(delay: Any) -> float | None:
    if not isinstance(delay, str) or not delay.endswith("s"):
        return None
    try:
        seconds = float(delay[:-1])
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e9 else None
