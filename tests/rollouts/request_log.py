"""A request log to evaluate, in place of ClickHouse."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from analytics.errors import AnalyticsUnavailableError
from analytics.queries.variants import UsualValues
from analytics.queries.variants.by_record import Recorded, RecordedMinute
from analytics.queries.variants.segments import SegmentMinute
from rollouts.evaluation.statistics.grid import bin_of
from rollouts.models import Rollout
from rollouts.open_requests.lists import OpenRequest
from rollouts.verdicts import evaluate, minutes, recorded, segments

LATENCY_MS, COST_UNITS = 400, 12_000_000


class StillClock:
    """Freezes the clock: the minute does not change in the middle of a test, and it has just begun."""

    minute: datetime | None = None


def this_minute() -> datetime:
    return StillClock.minute or datetime.now(UTC).replace(second=0, microsecond=0)


def begun(rollout: Rollout, minutes: int) -> Rollout:
    """Returns the rollout as if it had started so many minutes ago."""
    then = this_minute() - timedelta(minutes=minutes)
    Rollout.objects.filter(pk=rollout.pk).update(started_at=then, stage_started_at=then, running_since=then)
    rollout.refresh_from_db()
    return rollout


@dataclass
class RequestLog:
    """A request log in memory. With `away` the store does not answer. `recorded` are the rows of requests by id, with
    the arm and the time of each; a row that `add` received is recorded in the minute in which its request came."""

    rows: list[tuple[UUID, RecordedMinute]] = field(default_factory=list)
    usual: UsualValues = field(default_factory=UsualValues)
    away: bool = False
    query_count: int = 0
    recorded: dict[UUID, datetime] = field(default_factory=dict)
    open: list[OpenRequest] = field(default_factory=list)
    segments: list[SegmentMinute] = field(default_factory=list)
    left_out: list[set[UUID]] = field(default_factory=list)

    def take_the_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replaces the store and the web workers' lists for the rest of the test."""
        for module, name in (
            (minutes, "usual_values"),
            (evaluate, "visible_until"),
            (recorded, "recorded_minutes"),
            (recorded, "recorded_at"),
            (recorded, "open_requests"),
            (segments, "segment_minutes"),
        ):
            monkeypatch.setattr(module, name, getattr(self, name))

    def add(
        self,
        rollout: Rollout,
        ago: int,
        *,
        stage: int = 1,
        target: tuple[int, int] = (0, 0),
        baseline: tuple[int, int] = (0, 0),
        slower: float = 1.0,
    ) -> None:
        """Adds the minute that began `ago` minutes before this one, with the (requests, errors) of both arms."""
        minute = int(this_minute().timestamp()) // 60 - ago
        for variant, (requests, errors), factor in (("target", target, slower), ("baseline", baseline, 1.0)):
            if requests:
                self.rows.append((rollout.pk, _row(minute, stage, variant, requests, errors, factor)))

    def recorded_minutes(self, rows: Recorded, *, counted: Collection[UUID], **_: Any) -> list[RecordedMinute]:
        self.left_out.append(set(counted))
        self.query_count += 1
        if self.away:
            raise AnalyticsUnavailableError("away")
        first, last = int(rows.start.timestamp()) // 60, int(rows.end.timestamp()) // 60
        return sorted(
            (row for owner, row in self.rows if owner == rows.rollout_id and first <= row.minute < last),
            key=lambda row: (row.minute, row.stage, row.variant),
        )

    def segment_minutes(self, rows: Recorded, **_: Any) -> list[SegmentMinute]:
        first, last = int(rows.start.timestamp()) // 60, int(rows.end.timestamp()) // 60
        return [row for row in self.segments if first <= row.minute < last]

    def visible_until(self) -> datetime:
        if self.away:
            raise AnalyticsUnavailableError("away")
        return datetime.now(UTC) + timedelta(minutes=1)

    def recorded_at(self, _: UUID, arrived: Collection[UUID]) -> Mapping[UUID, datetime]:
        return {key: at for key, at in self.recorded.items() if key in arrived}

    def open_requests(self, rollout_id: UUID) -> list[OpenRequest]:
        return [one for one in self.open if one.rollout_id == str(rollout_id)]

    def usual_values(self, *_: Any, **__: Any) -> UsualValues:
        if self.away:
            raise AnalyticsUnavailableError("away")
        return self.usual


def _row(minute: int, stage: int, variant: str, requests: int, errors: int, factor: float) -> RecordedMinute:
    answered = requests - errors
    latency: Mapping[int, int] = _spread(LATENCY_MS * factor, answered)
    cost: Mapping[int, int] = _spread(COST_UNITS, answered)
    return RecordedMinute(
        minute=minute,
        stage=stage,
        variant=variant,
        allocated=requests,
        requests=requests,
        unanswered=errors,
        reasons={"provider_failed": errors} if errors else {},
        judged=requests,
        errors=errors,
        answered=answered,
        latency=latency,
        latency_ms=int(LATENCY_MS * factor * answered),
        cost=cost,
        cost_usd=Decimal(COST_UNITS * answered) / 10**10,
    )


def _spread(middle: float, count: int) -> dict[int, int]:
    """Returns values around the middle, the same for every arm and minute of a size."""
    found: dict[int, int] = {}
    for number in range(count):
        bin_number = bin_of(middle * (0.5 + (number * 7 % 11) / 10))
        found[bin_number] = found.get(bin_number, 0) + 1
    return found
