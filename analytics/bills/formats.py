"""Reads the cost reports that OpenAI and Anthropic export, JSON or CSV.

| Export | Read of it |
|---|---|
| OpenAI `GET /v1/organization/costs?group_by=line_item` (`openai.types.admin`) | `amount` in dollars, model before the comma of `line_item` |
| OpenAI's CSV of costs | `start_time_iso` or `start_time`, `amount_value`, `line_item` |
| Anthropic `GET /v1/organizations/cost_report?group_by[]=description` | `amount` in cents, `model` |
| Anthropic's CSV of costs | `usage_date_utc`, `cost_usd`, `model` |

JSON may be one page, a list of pages, or a page a line. Days are UTC.
"""  # noqa: E501 - a table

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any


class BillError(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Charge:
    """A charge of one UTC day in US dollars. `model` is the provider's name, "" for a charge without a model."""

    day: date
    model: str
    cost: Decimal


def read_bill(content: bytes) -> list[Charge]:
    """Raises BillError, which names the line or the bucket."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BillError("the file is not text") from error
    charges = list(_pages(text) if text.lstrip()[:1] in ("{", "[") else _rows(text))
    if not charges:
        raise BillError("the file has no charges")
    return charges


def _pages(text: str) -> Iterator[Charge]:
    for page in _decoded(text):
        buckets = page.get("data") if isinstance(page, Mapping) else None
        if not isinstance(buckets, list):
            raise BillError("a page holds no list named data")
        for number, bucket in enumerate(buckets):
            try:
                yield from _bucket(bucket)
            except (KeyError, TypeError, AttributeError, ValueError, InvalidOperation, OverflowError) as error:
                raise BillError(f"data[{number}] is not a bucket of a cost report: {error}") from error


def _decoded(text: str) -> list[Any]:
    try:
        try:
            found = json.loads(text, parse_float=Decimal)
        except json.JSONDecodeError:
            found = [json.loads(line, parse_float=Decimal) for line in text.splitlines() if line.strip()]
    except (json.JSONDecodeError, RecursionError) as error:
        raise BillError(f"the file is not valid JSON: {error}") from error
    return found if isinstance(found, list) else [found]


def _bucket(bucket: Mapping[str, Any]) -> Iterator[Charge]:
    start = bucket["start_time"] if "start_time" in bucket else bucket["starting_at"]
    day = _day(start)
    for result in bucket["results"]:
        amount = result["amount"]
        if isinstance(amount, Mapping):
            _check_currency(amount.get("currency"))
            yield Charge(day, _model_of(result.get("line_item")), _amount(amount.get("value") or 0))
        else:
            _check_currency(result.get("currency"))
            yield Charge(day, _text(result.get("model")), _amount(amount).scaleb(-2))


# The columns of each export: the day, the amount in dollars, and the model.
_COLUMNS = (
    ("usage_date_utc", "cost_usd", "model"),
    ("start_time_iso", "amount_value", "line_item"),
    ("start_time", "amount_value", "line_item"),
)


def _rows(text: str) -> Iterator[Charge]:
    reader = csv.DictReader(io.StringIO(text))
    names = set(reader.fieldnames or ())
    found = next((columns for columns in _COLUMNS if names.issuperset(columns)), None)
    if found is None:
        raise BillError("its columns are those of no cost export: " + "; ".join(", ".join(one) for one in _COLUMNS))
    day, amount, model = found
    for row in reader:
        try:
            _check_currency(row.get("amount_currency"))
            yield Charge(_day(row[day]), _model_of(row[model]), _amount(row[amount] or 0))
        except (TypeError, ValueError, InvalidOperation, OverflowError) as error:
            raise BillError(f"line {reader.line_num}: {error}") from error


def _day(value: object) -> date:
    if isinstance(value, str) and not value.isdigit():
        return datetime.fromisoformat(value).astimezone(UTC).date() if "T" in value else date.fromisoformat(value[:10])
    if isinstance(value, (int, str)):
        return datetime.fromtimestamp(int(value), UTC).date()
    raise ValueError(f"{value!r} is not a time")


def _amount(value: object) -> Decimal:
    amount = Decimal(str(value))
    if not amount.is_finite():
        raise ValueError(f"{value!r} is not an amount")
    return amount


def _model_of(line_item: object) -> str:
    return _text(line_item).partition(",")[0].strip()


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _check_currency(currency: object) -> None:
    if currency and str(currency).lower() != "usd":
        raise ValueError(f"charges are in {currency}, not in US dollars")
