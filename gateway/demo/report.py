from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import requests

from gateway.demo.player import Played
from gateway.demo.service import Access

_PAGE = 1000
_WAIT_SECONDS = 90.0
_ROWS_SHOWN = 40


class NotListedError(Exception):
    pass


def wait_for_sessions(access: Access, prefix: str, played: Sequence[Played]) -> list[dict[str, Any]]:
    # A failed conversation may have been refused before its request counted for a session.
    expected = {item.session_id: item.requests for item in played if not item.failure}
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        listed = {row["session_id"]: row for row in _sessions(access, prefix)}
        missing = [name for name, count in expected.items() if _count(listed.get(name)) < count]
        if not missing:
            return [listed[name] for name in sorted(listed)]
        if time.monotonic() > deadline:
            raise NotListedError(
                f"{len(missing)} of {len(expected)} sessions are not listed completely, the first of them {missing[0]}."
            )
        time.sleep(0.3)


def table(sessions: Sequence[dict[str, Any]], names: dict[str, str]) -> Iterator[str]:
    yield f"{'session':<28}{'conversation':<34}{'requests':>9}{'tokens':>10}{'cost USD':>14}{'errors':>8}"
    for row in sessions[:_ROWS_SHOWN]:
        yield _line(row["session_id"], names.get(row["session_id"], ""), [row])
    if len(sessions) > _ROWS_SHOWN:
        yield f"… and {len(sessions) - _ROWS_SHOWN} more sessions"
    yield _line("total", f"{len(sessions)} sessions", sessions)


def _line(session: str, name: str, rows: Sequence[dict[str, Any]]) -> str:
    requests_made = sum(row["request_count"] for row in rows)
    tokens = sum(row["total_tokens"] for row in rows)
    cost = sum((Decimal(row["total_cost_usd"] or 0) for row in rows), Decimal(0))
    errors = sum(row["error_count"] for row in rows)
    return f"{session:<28}{name[:32]:<34}{requests_made:>9}{tokens:>10}{cost:>14.6f}{errors:>8}"


def _count(row: dict[str, Any] | None) -> int:
    return 0 if row is None else int(row["request_count"])


def _sessions(access: Access, prefix: str) -> Iterator[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {access.api_key}", "X-Project-Id": access.project_id}
    offset = 0
    while True:
        query: dict[str, str] = {
            "project_id": access.project_id,
            "name_pattern": f"{prefix}-%",
            "limit": str(_PAGE),
            "offset": str(offset),
        }
        response = requests.get(f"{access.base_url}/api/llm/sessions", headers=headers, params=query, timeout=30)
        response.raise_for_status()
        results = response.json(parse_float=Decimal)["results"]
        yield from results
        offset += _PAGE
        if len(results) < _PAGE:
            return
