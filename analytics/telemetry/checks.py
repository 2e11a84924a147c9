"""Checks that a record can be stored and found again: its ids, times and number of members."""

from __future__ import annotations

from typing import Final, Protocol

from analytics.telemetry.errors import RejectedRecord

# The SDKs keep at most 128 attributes, events and links each by default.
MAX_MEMBERS: Final = 4096
# ClickHouse's DateTime64(9) ends in April 2262.
_LATEST: Final = 2**63 - 1


class _Sized(Protocol):
    def __len__(self) -> int: ...


def within_limits(*members: _Sized) -> None:
    if any(len(listed) > MAX_MEMBERS for listed in members):
        raise RejectedRecord(f"more than {MAX_MEMBERS} attributes, events or links")


def required_id(value: bytes, name: str, length: int) -> str:
    """The ids of a record in lower-case hexadecimal."""
    if len(value) != length:
        raise RejectedRecord(f"{name} must have {length} bytes")
    if not any(value):
        raise RejectedRecord(f"{name} is all zeros")
    return value.hex()


def optional_id(value: bytes, name: str, length: int) -> str:
    """Returns an id in hexadecimal, empty when there is none; some SDKs send zeros instead."""
    return required_id(value, name, length) if any(value) or len(value) not in (0, length) else ""


def required_time(nanoseconds: int, name: str) -> int:
    if not nanoseconds:
        raise RejectedRecord(f"{name} is missing")
    if nanoseconds > _LATEST:
        raise RejectedRecord(f"{name} is beyond the year 2262")
    return nanoseconds
