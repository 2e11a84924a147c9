"""Writes requests as a table of comma-separated values, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from analytics.exports.spreadsheet import to_csv
from analytics.queries.export import export_chunks
from analytics.queries.request_filters import RequestFilter
from analytics.request_log.record import RequestEntry
from analytics.wire.requests import request_entry

# The attempts of a request are a list, and only the export as lines of JSON has them.
_COLUMNS = [name for name in RequestEntry.__annotations__ if name not in ("attempts", "error")]
_ERROR = ("error_type", "error_code", "error_message")


def export_table(project_id: UUID, filters: RequestFilter) -> Iterator[bytes]:
    """Yields pieces of the table, the oldest requests first. Raises the errors of `client.query`."""
    yield to_csv([*_COLUMNS, *_ERROR], []).encode()
    for chunk in export_chunks(project_id, filters, content=False):
        yield to_csv([], (_cells(request_entry(row)) for row, _ in chunk)).encode()


def _cells(entry: RequestEntry) -> list[Any]:
    values: dict[str, Any] = {**entry, "created_at": entry["created_at"].isoformat()}
    error = entry["error"]
    texts = [error["type"], error["code"], error["message"]] if error else ["", "", ""]
    return [*(values[name] for name in _COLUMNS), *texts]
