from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_MAX_SECONDS = 1e9
_MAX_CHARACTERS = 4000
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# The pattern matches "Please try again in 5.89s" (OpenAI, Groq), "retry after 10 seconds" (Azure), "Please retry in
# 17.5s" (Google).
_WAIT = re.compile(
    r"(?i)\b(?:try again|retry)\s+(?:in|after)\s+"
    r"(?:(?P<seconds>\d+(?:\.\d+)?)\s*sec(?:ond)?s?\b|(?P<minutes>\d+(?:\.\d+)?)\s*min(?:ute)?s?\b"
    r"|(?P<duration>(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+)(?![A-Za-z]))"
)
# The pattern reads the header of https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/, as Hugging
# Face sends it.
_STRUCTURED = re.compile(r"\br=0\b[^,]*;\s*t=(\d+)")


def retry_after_seconds(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Reads `retry-after-ms`, `retry-after` (seconds or a date), or the exhausted limits; None without any."""
    now = now or datetime.now(UTC)
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    if (seconds := _number(value)) is not None:
        return seconds
    if value and (date := _date(value)) is not None:
        return max(0.0, (date - now).total_seconds())
    return max(_resets(headers, now), default=None)


def wait_in_message(decoded: Any, message: str, *, now: datetime | None = None) -> float | None:
    error = decoded.get("error") if isinstance(decoded, Mapping) else None
    metadata = error.get("metadata") if isinstance(error, Mapping) else None
    passed_on = metadata.get("headers") if isinstance(metadata, Mapping) else None
    if isinstance(passed_on, Mapping):
        headers = {name.lower(): str(value) for name, value in passed_on.items() if isinstance(name, str)}
        if (seconds := retry_after_seconds(headers, now=now)) is not None:
            return seconds
    match = _WAIT.search(message[:_MAX_CHARACTERS])
    if match is None:
        return None
    if match["duration"] is not None:
        return _duration(match["duration"])
    return float(match["seconds"]) if match["seconds"] is not None else float(match["minutes"]) * 60


def _resets(headers: Mapping[str, str], now: datetime) -> Iterator[float]:
    """The reset times of exhausted limits: `x-ratelimit-reset-tokens` beside `x-ratelimit-remaining-tokens: 0`, and
    likewise Anthropic (`anthropic-ratelimit-…`), OpenRouter and Together (no suffix), Cerebras (`…-day`) and Mistral
    (`ratelimitbysize-…`)."""
    for name, value in headers.items():
        if "ratelimit" not in name:
            continue
        if name == "ratelimit":
            if (structured := _STRUCTURED.search(value)) is not None:
                yield float(structured[1])
        elif "reset" in name and headers.get(name.replace("reset", "remaining"), "").strip() in ("0", "0.0"):
            wait = _until(value.strip(), now)
            if wait is not None:
                yield wait


def _until(value: str, now: datetime) -> float | None:
    if (wait := _duration(value)) is not None:
        return wait
    if value.isdecimal() and len(value) <= 15:
        unix = int(value) / (1000 if len(value) > 11 else 1)
        return max(0.0, unix - now.timestamp())
    date = _date(value)
    return None if date is None else max(0.0, (date - now).total_seconds())


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < _MAX_SECONDS else None


def _duration(value: str) -> float | None:
    if (seconds := _number(value)) is not None:
        return seconds
    if not _DURATION.fullmatch(value):
        return None
    return sum(float(count) * _UNITS[unit] for count, unit in _PARTS.findall(value))


def _date(value: str) -> datetime | None:
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = read(value)
        except (ValueError, OverflowError):
            continue
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None
