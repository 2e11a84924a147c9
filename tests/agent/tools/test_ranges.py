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
from tests.tables.cases import tabled

NOTHING = Granted(frozenset(), frozenset())
# 2026-11-21 is a Saturday.
NOW = datetime(2026, 11, 21, 10, 20, 30, 5, tzinfo=UTC)


def _range(given: dict[str, str], now: datetime = NOW) -> tuple[str, str]:
    context = ToolContext(uuid4(), NOTHING, now)
    found = date_range(context, read_arguments(given, RangeArguments))
    return found.start.isoformat(), found.end.isoformat()


@tabled
def test_range__any_notation__its_dates(given: dict[str, str], expected: tuple[str, str]) -> None:
    assert _range(given) == expected


def test_range__january__last_month_is_of_the_year_before() -> None:
    found = _range({"period": "last_month"}, datetime(2026, 1, 31, 23, tzinfo=timezone(timedelta(hours=-3))))

    assert found == ("2026-01-01T00:00:00+00:00", "2026-01-31T23:59:59.999999+00:00")


@tabled
def test_range__given_twice_or_malformed__refused_by_name(given: dict[str, str], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        _range(given)
    assert list(refused.value.details or {}) == [field]


@tabled
def test_range__no_dates__refused_as_the_management_api_does(given: dict[str, str], field: str) -> None:
    with pytest.raises(RestError) as refused:
        _range(given)
    assert isinstance(refused.value.detail, dict)
    assert list(refused.value.detail) == [field]


def test_dates__none_given__none() -> None:
    assert range_dates(ToolContext(uuid4(), NOTHING, NOW), RangeArguments()) == {}
