"""Costs by a dimension as a file for spreadsheets."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from analytics.exports.spreadsheet import to_csv

MAX_EXPORTED = 10_000

_EXPORTED = (
    "key", "name", "request_count", "error_count", "prompt_tokens", "completion_tokens", "total_tokens",
    "total_cost_usd", "percentage", "unpriced_request_count",
)  # fmt: skip
_EXPORTED_BEFORE = ("request_count", "total_tokens", "total_cost_usd")


def cost_table(results: Any) -> str:
    """Returns entries of `metrics/cost` as CSV."""
    return to_csv(
        [*_EXPORTED, *(f"previous_{name}" for name in _EXPORTED_BEFORE)],
        (
            [*(one[name] for name in _EXPORTED), *(one["previous"][name] for name in _EXPORTED_BEFORE)]
            for one in results
        ),
    )


def csv_response(name: str, text: str) -> HttpResponse:
    """Returns the text as a file that browsers save."""
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
