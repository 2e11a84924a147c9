from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args, get_type_hints
from uuid import UUID

from analytics.request_log.record import RequestRecord
from analytics.request_log.types import Column, Since

_HINTS = get_type_hints(RequestRecord, include_extras=True)


def declared(record: type[RequestRecord]) -> dict[str, Column]:
    hints = get_type_hints(record, include_extras=True)
    return {name: _column(name, *get_args(hints[name])) for name in record.__struct_fields__}


def _column(name: str, *annotations: Any) -> Column:
    match annotations:
        case (_, Column() as column):
            return column
        case (_, Column() as column, Since(migration=number)):
            return replace(column, since=number)
    raise TypeError(f"RequestRecord.{name} says nothing of its column: give it a type of analytics.request_log.types")


RECORDED = declared(RequestRecord)
"""The columns that are fields of a record."""


def _plain(value: type, *types: str) -> tuple[str, ...]:
    return tuple(
        name for name, column in RECORDED.items() if column.type in types and get_args(_HINTS[name])[0] is value
    )


def _maximum(name: str) -> int:
    column = RECORDED[name]
    return 2 ** int(column.type.removeprefix("UInt")) - 1 if column.maximum is None else column.maximum


IDS = tuple(name for name in _plain(str, "UUID") if name not in ("project_id", "request_id"))
"""The ids that a request may be without."""
TEXTS = _plain(str, "String", "LowCardinality(String)")
NUMBERS = {name: _maximum(name) for name in _plain(int, "UInt16", "UInt32", "UInt64")}
"""The columns of numbers, each with the largest that is stored; the smallest is 0."""
FLAGS = _plain(bool, "Bool")
MONEY = _plain(str, "Decimal(18, 10)")

INGESTED = (
    "project_id", "request_id", "ts", "outcome", *IDS, *TEXTS, *NUMBERS, *FLAGS, *MONEY, "attempts", "attributes",
    "spans_derived", "prompt", "completion", "request", "response", "shared", "shared_at", "shared_bytes", "opening",
)  # fmt: skip
"""The columns of the table `ingest`, in the order in which the shipper sends them."""

TEXTS_KEPT_DAYS = 90
"""Texts are kept for as many days at most, as the views of `ingest` say too."""

NO_ID = UUID(int=0)
NO_MONEY = "0"
DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(IDS, NO_ID),
    **dict.fromkeys(TEXTS, ""),
    **dict.fromkeys(NUMBERS, 0),
    **dict.fromkeys((*FLAGS, "spans_derived"), False),
    **dict.fromkeys(MONEY, NO_MONEY),
    **dict.fromkeys(("attempts", "prompt", "completion", "request", "response", "opening"), b""),
    **dict.fromkeys(("shared_at", "shared_bytes"), 0),
    "shared": (),
    "attributes": {},
    "operation": "chat",
}
"""The values, as the shipper sends them, that the table `ingest` gives to columns which an insert leaves out."""

Columns = Mapping[str, Sequence[Any]]
"""The values of a batch of rows of `ingest` by column. Columns in which all rows have the default may be missing."""


def rows_of(columns: Columns) -> int:
    """Returns 0 without columns: the request's id has no default, so every row would have it."""
    return len(columns["request_id"]) if columns else 0


def values_of(columns: Columns, name: str) -> Sequence[Any]:
    """Returns default values for a missing column."""
    return columns[name] if name in columns else [DEFAULTS[name]] * rows_of(columns)


ANONYMISED = (*(name for name, column in RECORDED.items() if column.is_kept), "drop_date", "recorded_at")
"""The columns of the table `anonymised` that come from the request's row."""
