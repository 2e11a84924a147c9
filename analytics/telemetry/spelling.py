"""Spells kinds, statuses and severities as the collector's exporter writes them today.

Older exporters wrote `SPAN_KIND_SERVER` and `STATUS_CODE_ERROR`, which are read as `Server` and `Error`.
"""

from __future__ import annotations

from typing import Final

KINDS: Final = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")
STATUSES: Final = ("Unset", "Ok", "Error")
# Severity numbers come in ranges of four (OpenTelemetry logs data model, "Displaying Severity").
_SEVERITIES: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")


def kind(number: int) -> str:
    return KINDS[number] if 0 <= number < len(KINDS) else KINDS[0]


def status(number: int) -> str:
    return STATUSES[number] if 0 <= number < len(STATUSES) else STATUSES[0]


def kind_as_today(stored: str) -> str:
    return _as_today(stored, "SPAN_KIND_", KINDS)


def status_as_today(stored: str) -> str:
    return _as_today(stored, "STATUS_CODE_", STATUSES)


def severity_name(text: str, number: int) -> str:
    if text or not 1 <= number <= 4 * len(_SEVERITIES):
        return text
    return _SEVERITIES[(number - 1) // 4]


def _as_today(stored: str, prefix: str, names: tuple[str, ...]) -> str:
    name = stored.removeprefix(prefix).capitalize()
    return name if name in names else stored or names[0]
