from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from uuid import UUID

from analytics.errors import AnalyticsLimitError
from analytics.queries import visible
from analytics.queries.request_cursor import KEYED, keyed
from analytics.queries.request_filters import RequestFilter
from analytics.queries.requests import COLUMNS, Payload, RequestRow, StoredPayload, request_conditions, whole_payloads

logger = logging.getLogger("analytics.export")

# Every chunk has a query of its own that starts behind the last key, so that none stays open while a client reads.
CHUNK_ROWS = 2_000
# Bodies have any size: the next chunk has as many rows as made this many bytes in the last one.
CHUNK_BYTES = 8 * 1024 * 1024
_FIRST_PAYLOADS = 50
_MAX_PAYLOADS = 200

Exported = tuple[RequestRow, Payload | None]


def export_chunks(project_id: UUID, filters: RequestFilter, *, content: bool) -> Iterator[list[Exported]]:
    """Yields chunks of (request, bodies), oldest first; bodies are None without `content` or if none are stored.

    Includes requests that are written during the export if they are newer than the last key. Raises the errors of
    `visible.query`.
    """
    last: RequestRow | None = None
    while rows := _rows_after(project_id, filters, last):
        if content:
            yield from _with_payloads(project_id, rows)
        else:
            yield [(row, None) for row in rows]
        if len(rows) < CHUNK_ROWS:
            return
        last = rows[-1]


def _rows_after(project_id: UUID, filters: RequestFilter, last: RequestRow | None) -> list[RequestRow]:
    where, params = request_conditions(project_id, filters)
    if last:
        # The first condition is redundant and lets the query use the primary key.
        where += (
            " AND ts >= {last_ts:DateTime64(6, 'UTC')}"
            " AND (ts > {last_ts:DateTime64(6, 'UTC')} OR request_id > {last_id:UUID})"
        )
        params |= {"last_ts": last.ts, "last_id": last.request_id}
    sql = f"SELECT {COLUMNS} FROM requests WHERE {where} ORDER BY ts, request_id LIMIT {CHUNK_ROWS}"
    return visible.query(sql, params, row=RequestRow, name="export.requests")


def _with_payloads(project_id: UUID, rows: Sequence[RequestRow]) -> Iterator[list[Exported]]:
    size, done = _FIRST_PAYLOADS, 0
    while done < len(rows):
        part = rows[done : done + size]
        try:
            found = _payloads(project_id, part)
        except AnalyticsLimitError:
            if len(part) == 1:
                raise
            size = len(part) // 2
            logger.info("export.halved project_id=%s rows=%d", project_id, size)
            continue
        yield [(row, found.get(row.request_id)) for row in part]
        done += len(part)
        held = sum(len(payload.request) + len(payload.response) for payload in found.values())
        size = min(_MAX_PAYLOADS, max(1, CHUNK_BYTES * len(part) // max(held, 1)))


def _payloads(project_id: UUID, rows: Sequence[RequestRow]) -> dict[UUID, Payload]:
    sql = f"SELECT request_id, request, response, shared, shared_at FROM payloads PREWHERE {KEYED}"
    found = visible.query(sql, keyed(project_id, rows), row=StoredPayload, name="export.payloads")
    return whole_payloads(project_id, found)
