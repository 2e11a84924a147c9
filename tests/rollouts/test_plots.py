"""The minutes of a rollout as sums over time, and the plots of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from rollouts.comparison.minute_sums import BUCKETS, _sql, minute_sums
from rollouts.comparison.plots import metric_plots, traffic_plot
from rollouts.models import Rollout, RolloutMinute
from tests.factories.rollouts import make_rollout

pytestmark = pytest.mark.django_db

BEGAN = datetime(2026, 3, 4, 12, tzinfo=UTC)
ARM: Mapping[str, Any] = {
    "requests": 5, "unanswered": 2, "judged": 4, "errors": 1, "answered": 4, "contract": 2, "truncated": 1,
    "fallback": 0, "empty": 4, "stopped": 1, "latency": {"9": 3, "12": 1}, "latency_ms": 400, "cost": {"3": 2},
    "cost_usd": "0.5000000000",
}  # fmt: skip
NOTHING: dict[str, Any] = {name: {} if isinstance(value, dict) else 0 for name, value in ARM.items()} | {
    "cost_usd": "0"
}


def stored(minutes: int, target: Any = ARM, baseline: Any = ARM, *, every: int = 1) -> Rollout:
    rollout = make_rollout(started=True)
    RolloutMinute.objects.bulk_create(
        RolloutMinute(
            rollout=rollout,
            minute=BEGAN + timedelta(minutes=number * every),
            stage=1,
            counts={
                "minute": int(BEGAN.timestamp()) // 60 + number * every,
                "target": target,
                "baseline": baseline,
            },
        )
        for number in range(minutes)
    )
    return rollout


def test_sums__thousands_of_minutes__few_intervals_and_nothing_lost() -> None:
    found = minute_sums(stored(5000).pk)
    assert found is not None
    assert len(found.times) <= BUCKETS
    assert found.times[0] == BEGAN
    assert all(later - earlier == found.step for earlier, later in zip(found.times, found.times[1:], strict=False))
    arms = [arm for arm in found.target if arm]
    assert sum(arm.requests for arm in arms) == 25_000
    assert sum(arm.answered for arm in arms) == sum(arm.timed for arm in arms) == 20_000
    assert sum(arm.priced for arm in arms) == 10_000
    assert sum(arm.cost_usd for arm in arms) == Decimal(2500)


@pytest.mark.parametrize("vendor", ["postgresql", "sqlite"])
def test_sql__either_database__one_row_of_the_same_sums(vendor: str) -> None:
    counts = {"minute": 7, "target": ARM, "baseline": NOTHING}
    if vendor == "sqlite":
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute("CREATE TABLE rollouts_rolloutminute (rollout_id TEXT, counts TEXT)")
            database.execute("INSERT INTO rollouts_rolloutminute VALUES ('one', ?)", [json.dumps(counts)])
            found = database.execute(_sql(vendor, "target").replace("%s", "?"), (5, 2, "one")).fetchall()
    else:
        rollout = stored(1)
        RolloutMinute.objects.update(counts=counts)
        with connection.cursor() as cursor:
            cursor.execute(_sql(vendor, "target"), (5, 2, rollout.pk))
            found = cursor.fetchall()
    assert [[float(one) for one in row] for row in found] == [[1, 5, 2, 4, 1, 4, 2, 1, 0, 4, 1, 4, 400, 2, 0.5]]


def test_sums__gap__none() -> None:
    found = minute_sums(stored(3, every=30).pk)
    assert found is not None
    assert [arm is not None for arm in found.target] == [number % 30 == 0 for number in range(61)]
    assert minute_sums(make_rollout().pk) is None


def test_plots__one_minute__each_figure_of_both_arms() -> None:
    rollout = stored(1, baseline=NOTHING)
    sums = minute_sums(rollout.pk)
    assert sums is not None
    metrics = {"error_rate": {"baseline": 0.1, "failing_difference": 0.025}}
    stages = list(rollout.stages.all())
    found, traffic = metric_plots(sums, stages, metrics), traffic_plot(sums, stages)
    values = {name: [series.values for series in plot.series] for name, plot in found.items()}
    assert values == {
        "unanswered": [[0.4], [None]],
        "error_rate": [[0.25], [None]],
        "contract": [[0.5], [None]],
        "truncated": [[0.25], [None]],
        "fallback": [[0.0], [None]],
        "empty": [[1.0], [None]],
        "stopped": [[0.2], [None]],
        "latency_average": [[100], [None]],
        "cost_per_request": [[Decimal("0.25")], [None]],
    }
    assert traffic is not None
    assert [series.values for series in traffic.series] == [[5], [0]]
    assert [threshold.value for threshold in found["error_rate"].thresholds] == [0.125]
    assert [mark.name for mark in found["error_rate"].marks] == ["stage 1, 10 %"]
    assert not found["unanswered"].thresholds
