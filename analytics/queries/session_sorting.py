"""The orders of a list of sessions, and the cursors that hold a place in one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_FORM = re.compile(r"(-?)([0-9]{1,19})-([0-9]{1,20})(?:\.(-?[a-z_]{1,20}))?", re.ASCII)
_MAX_VALUE, _MAX_HASH = 2**63 - 1, 2**64 - 1

# Each value is a whole number, so that a cursor holds it exactly: times and durations in microseconds, costs in the
# ten decimal places of the log, a mean score in thousandths and 0 without one.
VALUES: Mapping[str, str] = {
    "ended_at": "toUnixTimestamp64Micro(max(s.ended_at))",
    "started_at": "toUnixTimestamp64Micro(min(s.started_at))",
    "duration_seconds": "toUnixTimestamp64Micro(max(s.ended_at)) - toUnixTimestamp64Micro(min(s.started_at))",
    "request_count": "toInt64(sum(s.requests))",
    "error_count": "toInt64(sum(s.errors))",
    "total_tokens": "toInt64(sum(s.prompt_tokens) + sum(s.completion_tokens))",
    "total_cost_usd": "toInt64(sum(s.cost_usd) * 10000000000)",
    "feedback_score": "toInt64(round(any(f.mean) * 1000))",
}
SORTS = tuple(f"{sign}{name}" for name in VALUES for sign in ("-", ""))
LATEST = "-ended_at"


@dataclass(frozen=True, slots=True)
class SessionCursor:
    """The last session of a page, before the next one; with `is_back` the first, after the previous page.

    `value` is what the list is sorted by.
    """

    value: int
    session_hash: int
    is_back: bool = False
    sort: str = LATEST

    def __str__(self) -> str:
        place = f"{'-' if self.is_back else ''}{self.value}-{self.session_hash}"
        return place if self.sort == LATEST else f"{place}.{self.sort}"


def parse_session_cursor(text: str) -> SessionCursor | None:
    found = _FORM.fullmatch(text)
    if found is None or int(found[2]) > _MAX_VALUE or int(found[3]) > _MAX_HASH or (found[4] or LATEST) not in SORTS:
        return None
    return SessionCursor(int(found[2]), int(found[3]), bool(found[1]), found[4] or LATEST)
