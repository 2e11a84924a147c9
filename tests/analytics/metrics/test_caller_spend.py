"""The spend of teams, API keys and users in a range, from which the limits are made exact, equals plain arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from analytics.queries.spend import key_spends, team_spends, user_spends
from tests.analytics.metrics.conftest import Api
from tests.factories.analytics import make_entry, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
CASES: list[tuple[Callable[..., Any], str, list[Any]]] = [
    (team_spends, "team_id", [3, 4]),
    (key_spends, "api_key_id", [3, 4]),
    (user_spends, "user_id", ["ann/1", "böb"]),
]


@pytest.mark.parametrize(("spends_of", "field", "callers"), CASES)
def test_spends__of_callers_with_ranges_of_their_own__sum_what_lies_in_them(
    api: Api, spool: Path, spends_of: Callable[..., Any], field: str, callers: list[Any]
) -> None:
    until = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    beyond = until + timedelta(minutes=40)
    ranges = {callers[0]: (until, beyond), callers[1]: (START + 5 * SECOND, END)}
    times = [
        START - SECOND, START, START + SECOND, START + 7 * SECOND, until - timedelta(days=3),
        until - timedelta(minutes=30), until - SECOND, until, until + SECOND, beyond,
        beyond + SECOND, END - SECOND, END,
    ]  # fmt: skip
    costs = {(caller, time): Decimal(2) ** place for caller in callers for place, time in enumerate(times)}
    store(
        spool,
        *(
            make_entry(
                project_id=api[1],
                ts=int(time.timestamp() * 1_000_000),
                cost_usd=f"{cost:.10f}",
                cost_known=True,
                **{field: caller},
            )
            for (caller, time), cost in costs.items()
        ),
    )

    found = spends_of(UUID(str(api[1])), ranges, (START, END))

    expected = {
        caller: sum(
            cost
            for (one, time), cost in costs.items()
            if one == caller and START <= time < END and (time < ranges[caller][0] or time > ranges[caller][1])
        )
        for caller in callers
    }
    assert found == expected
    assert spends_of(UUID(str(api[1])), {}, (START, END)) == {}
