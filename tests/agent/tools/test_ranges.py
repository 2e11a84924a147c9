"""The range of time that a call's arguments name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import uuid4

import pytest
from rest_framework.exceptions import ValidationError as RestError

from agent.tools.base import ToolContext
from agent.tools.pages import RangeArguments
from agent.tools.ranges import date_range, range_dates
from agent.tools.registry import read_arguments
from agent.tools.scopes import Granted
from core.errors import ValidationError

NOTHING = Granted(frozenset(), frozenset())
# 2026-11-21 is a Saturday.
NOW = datetime(2026, 11, 21, 10, 20, 30, 5, tzinfo=UTC)


def _range(given: dict[str, str], now: datetime = NOW) -> tuple[str, str]:
    context = ToolContext(uuid4(), NOTHING, now)
    found = date_range(context, read_arguments(given, RangeArguments))
    return found.start.isoformat(), found.end.isoformat()


_END = "2026-11-21T23:59:59.999999+00:00"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("2026-10-23T00:00:00+00:00", _END)),
        ({"last": "1d"}, ("2026-11-21T00:00:00+00:00", _END)),
        ({"last": "7d"}, ("2026-11-15T00:00:00+00:00", _END)),
        ({"last": "7d\n"}, ("2026-11-15T00:00:00+00:00", _END)),
        ({"last": "2w"}, ("2026-11-08T00:00:00+00:00", _END)),
        ({"last": "9999w"}, ("1970-01-01T00:00:00+00:00", _END)),
        ({"last": "24h"}, ("2026-11-20T10:20:30.000005+00:00", NOW.isoformat())),
        ({"last": "45m"}, ("2026-11-21T09:35:30.000005+00:00", NOW.isoformat())),
        ({"period": "today"}, ("2026-11-21T00:00:00+00:00", _END)),
        ({"period": "yesterday"}, ("2026-11-20T00:00:00+00:00", "2026-11-20T23:59:59.999999+00:00")),
        ({"period": "this_week"}, ("2026-11-16T00:00:00+00:00", _END)),
        ({"period": "last_week"}, ("2026-11-09T00:00:00+00:00", "2026-11-15T23:59:59.999999+00:00")),
        ({"period": "this_month"}, ("2026-11-01T00:00:00+00:00", _END)),
        ({"period": "last_month"}, ("2026-10-01T00:00:00+00:00", "2026-10-31T23:59:59.999999+00:00")),
        ({"start_date": "2026-11-01"}, ("2026-11-01T00:00:00+00:00", _END)),
        (
            {"start_date": "2026-11-01T02:00:00+02:00", "end_date": "2026-11-02"},
            ("2026-11-01T00:00:00+00:00", "2026-11-02T23:59:59.999999+00:00"),
        ),
    ],
)
def test_range__any_notation__its_dates(given: dict[str, str], expected: tuple[str, str]) -> None:
    assert _range(given) == expected


def test_range__january__last_month_is_of_the_year_before() -> None:
    found = _range({"period": "last_month"}, datetime(2026, 1, 31, 23, tzinfo=timezone(timedelta(hours=-3))))

    assert found == ("2026-01-01T00:00:00+00:00", "2026-01-31T23:59:59.999999+00:00")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"last": "7d", "period": "today"}, "last"),
        ({"last": "7d", "start_date": "2026-11-01"}, "last"),
        ({"period": "today", "end_date": "2026-11-01"}, "period"),
        ({"last": "7"}, "last"),
        ({"last": "0d"}, "last"),
        ({"last": "10000d"}, "last"),
        ({"period": "next_week"}, "period"),
    ],
)
def test_range__given_twice_or_malformed__refused_by_name(given: dict[str, str], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        _range(given)
    assert list(refused.value.details or {}) == [field]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"start_date": "yesterday"}, "start_date"),
        ({"end_date": "2026-13-01"}, "end_date"),
        ({"start_date": "2026-11-02", "end_date": "2026-11-01"}, "end_date"),
    ],
)
def test_range__no_dates__refused_as_the_management_api_does(given: dict[str, str], field: str) -> None:
    with pytest.raises(RestError) as refused:
        _range(given)
    assert isinstance(refused.value.detail, dict)
    assert list(refused.value.detail) == [field]


def test_dates__none_given__none() -> None:
    assert range_dates(ToolContext(uuid4(), NOTHING, NOW), RangeArguments()) == {}
