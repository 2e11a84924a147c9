"""Settings that other gateways leave open further than this one."""

from __future__ import annotations

from typing import Any

from gateway.configuration.origins.remaining import Remaining
from gateway.configuration.problems import Path

_MAX_ATTEMPTS = 10
_MAX_CACHE_SECONDS = 30 * 86_400


def retry_settings(remaining: Remaining, path: Path, retries: float) -> dict[str, Any]:
    attempts = int(retries) + 1
    if attempts > _MAX_ATTEMPTS:
        remaining.note(path, f"at most {_MAX_ATTEMPTS} attempts are made here")
    return {"retry_enabled": attempts > 1, "retry_max_attempts": max(1, min(attempts, _MAX_ATTEMPTS))}


def cache_settings(remaining: Remaining, path: Path, seconds: float) -> dict[str, Any]:
    if seconds > _MAX_CACHE_SECONDS:
        remaining.note(path, "answers are kept for at most 30 days")
    return {"cache_ttl_seconds": int(min(seconds, _MAX_CACHE_SECONDS))}
