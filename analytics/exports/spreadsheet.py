from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from django.http import HttpResponse

from analytics.queries.export import export_chunks
from analytics.queries.request_filters import RequestFilter
from analytics.request_log.record import RequestEntry
from analytics.wire.requests import request_entry

# A spreadsheet takes a cell that begins so for a formula, which can send its owner's data elsewhere
# (https://owasp.org/www-community/attacks/CSV_Injection). Clients choose the names of users, sessions and models.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
# The attempts of a request are a list, and only the export as lines of JSON has them.
_COLUMNS = [name for name in RequestEntry.__annotations__ if name not in ("attempts", "error")]
_ERROR = ("error_type", "error_code", "error_message")
MAX_EXPORTED = 10_000
_EXPORTED = (
    "key", "name", "request_count", "error_count", "prompt_tokens", "completion_tokens", "total_tokens",
    "total_cost_usd", "percentage", "unpriced_request_count",
)  # fmt: skip
_EXPORTED_BEFORE = ("request_count", "total_tokens", "total_cost_usd")


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns CSV by RFC 4180 with a line of column names; without columns it has no such line.

    A text that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay unchanged.
    """
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    if columns:
        writer.writerow([_cell(name) for name in columns])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return written.getvalue()


def _cell(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA_STARTS)
    return f"'{value}" if is_formula else value


def export_table(project_id: UUID, filters: RequestFilter) -> Iterator[bytes]:
    yield to_csv([*_COLUMNS, *_ERROR], []).encode()
    for chunk in export_chunks(project_id, filters, content=False):
        yield to_csv([], (_cells(request_entry(row)) for row, _ in chunk)).encode()


def _cells(entry: RequestEntry) -> list[Any]:
    values: dict[str, Any] = {**entry, "created_at": entry["created_at"].isoformat()}
    error = entry["error"]
    texts = [error["type"], error["code"], error["message"]] if error else ["", "", ""]
    return [*(values[name] for name in _COLUMNS), *texts]


def cost_table(results: Any) -> str:
    return to_csv(
        [*_EXPORTED, *(f"previous_{name}" for name in _EXPORTED_BEFORE)],
        (
            [*(one[name] for name in _EXPORTED), *(one["previous"][name] for name in _EXPORTED_BEFORE)]
            for one in results
        ),
    )


def csv_response(name: str, text: str) -> HttpResponse:
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
