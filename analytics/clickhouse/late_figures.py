"""Makes the figures that come later than the request log: an insert has a price for each view behind it.

Rows that the shipper inserts say `figures_later`, and `ingest_figures_mv` passes them over. They are read again from
`requests` and inserted into `ingest_figures`, the source of the views that need not be fresh at once.

The rows are divided by the time at which they were recorded into windows, which have numbers and no gaps. A window ends
before every insert that still runs, so that its rows do not change any more. It is written down under the token of its
number and start, so that all processes have the same end; and each slice of its rows is inserted under a token of its
own. So any process may make a window, after another one's death or at the same time: each row counts once.

A row is missed if the store's clock goes back by more than the windows lag; the nightly reconciliation finds it.
"""

from __future__ import annotations

import time
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime

from django.conf import settings

from analytics.clickhouse import client
from analytics.clickhouse.visible import store_time, visible_until
from analytics.errors import AnalyticsUnavailableError

ROWS_AT_ONCE = 50_000
"""The rows of an insert of figures, and how many a shipper leaves waiting at most."""

_WAIT_SECONDS = 30.0
_LOOK_EVERY_SECONDS = 0.05
_TABLE = "figures_windows"
_COLUMNS = ("number", "since", "until", "slices", "is_made")
_LAST = f"SELECT {', '.join(_COLUMNS)} FROM {{of}}{_TABLE} ORDER BY number DESC, is_made DESC LIMIT 1"
_WAITING = (
    "figures_later AND recorded_at >= {{since:DateTime64(3, 'UTC')}} AND recorded_at < {{until:DateTime64(3, 'UTC')}}"
)
_COUNT = f"SELECT count() FROM {{of}}requests WHERE {_WAITING}"
_FIGURED = """
    project_id, ts, outcome, status_code, api_key_id, team_id, session_id, user_id, source, provider, model,
    requested_model, error_type, error_code, retry_count, fallback_used, prompt_tokens, completion_tokens,
    cache_read_tokens, cache_write_tokens, cost_known, cost_usd, latency_ms, ttft_ms, prompt_config_id, prompt_version,
    rollout_id, rollout_stage, variant, contract_violation, attempts, attributes, operation
"""
_MAKE = f"""
INSERT INTO {{of}}ingest_figures ({_FIGURED}, retention_days)
SELECT {_FIGURED}, toUInt16(drop_date - toDate(ts, 'UTC')) FROM {{of}}requests
WHERE {_WAITING} AND cityHash64(request_id) % {{{{slices:UInt32}}}} = {{{{slice:UInt32}}}}
"""
# A token counts for the whole of one block.
_ONE_BLOCK = {
    "max_threads": 1,
    "max_insert_threads": 1,
    "min_insert_block_size_rows": 1 << 30,
    "min_insert_block_size_bytes": 0,
    "parallel_distributed_insert_select": 0,
}


@dataclass(frozen=True)
class Window:
    """The rows recorded from `since` up to, not including, `until`; `is_made` once all slices are inserted."""

    number: int
    since: datetime
    until: datetime
    slices: int
    is_made: bool

    def token(self, part: object) -> str:
        return f"{self.number}.{self.since.timestamp():.3f}.{part}"


_NONE = Window(0, datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), 0, is_made=True)


def settle() -> None:
    """Makes the figures of every row that was recorded before the call. Raises the errors of the store."""
    now, deadline = store_time(), time.monotonic() + _WAIT_SECONDS
    while advance() < now:
        if time.monotonic() > deadline:
            raise AnalyticsUnavailableError("The figures of the latest requests are not there yet.")
        time.sleep(_LOOK_EVERY_SECONDS)


def settle_closed(database: str) -> None:
    """Makes all figures in another database of the same server, which does not take rows any more."""
    _advance(store_time(), of=f"{database}.")


def advance() -> datetime:
    """Makes the figures of the rows that can be read; returns the time up to which they are complete then.

    Raises the errors of the store: the next call of any process goes on.
    """
    return _advance(visible_until())


def _advance(until: datetime, of: str = "") -> datetime:
    last = _last(of)
    if not last.is_made:
        _make(last, of)
    if until <= last.until:
        return last.until
    rows = client.query(
        _COUNT.format(of=of), {"since": last.until, "until": until}, row=int, name="figures.waiting", fresh=_fresh(of)
    )[0]
    if not rows:
        return until
    _write_down(Window(last.number + 1, last.until, until, -(-rows // ROWS_AT_ONCE), is_made=False), of)
    # Another process may have written down another end for this number, and may have made it.
    agreed = _last(of)
    if not agreed.is_made:
        _make(agreed, of)
    return agreed.until


def _make(window: Window, of: str) -> None:
    shared = {
        **_ONE_BLOCK,
        "max_memory_usage": settings.CLICKHOUSE_QUERY_BYTES,
        "max_execution_time": settings.CLICKHOUSE_QUERY_SECONDS,
    }
    bounds = {"since": window.since, "until": window.until, "slices": window.slices}
    for number in range(window.slices):
        once = client.exactly_once(window.token(number))
        client.execute(_MAKE.format(of=of), {**bounds, "slice": number}, {**shared, **once}, fresh=_fresh(of))
    _write_down(replace(window, is_made=True), of)


def _write_down(window: Window, of: str) -> None:
    client.insert(f"{of}{_TABLE}", _COLUMNS, [astuple(window)], token=window.token(window.is_made))


def _last(of: str) -> Window:
    found = client.query(_LAST.format(of=of), {}, row=Window, name="figures.window", fresh=_fresh(of, _TABLE))
    return found[0] if found else _NONE


def _fresh(of: str, table: str = "requests") -> tuple[str, ...]:
    return () if of else (table,)
