"""Figures as a file for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

# A spreadsheet takes a cell that begins so for a formula, which can send its owner's data elsewhere
# (https://owasp.org/www-community/attacks/CSV_Injection). Clients choose the names of users, sessions and models.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns the rows as CSV by RFC 4180 with a line of column names, unless there are no columns.

    A text that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay as they are."""
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    if columns:
        writer.writerow([_cell(name) for name in columns])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return written.getvalue()


def _cell(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA_STARTS)
    return f"'{value}" if is_formula else value
