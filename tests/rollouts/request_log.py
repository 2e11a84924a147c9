"""A request log to evaluate, in place of ClickHouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.errors import AnalyticsUnavailableError
from analytics.queries.variants import UsualValues
from analytics.queries.variants.by_arrival import ArmMinute
from rollouts.evaluation import bin_of
from rollouts.models import Rollout

LATENCY_MS, COST_UNITS = 400, 12_000_000


class StillClock:
    """While `minute` is set, the minute does not change in the middle of a test, and it has just begun."""

    minute: datetime | None = None


def this_minute() -> datetime:
    return StillClock.minute or datetime.now(UTC).replace(second=0, microsecond=0)


def begun(rollout: Rollout, minutes: int) -> Rollout:
    """The rollout as if it had started so many minutes ago."""
    then = this_minute() - timedelta(minutes=minutes)
    Rollout.objects.filter(pk=rollout.pk).update(started_at=then, stage_started_at=then, running_since=then)
    rollout.refresh_from_db()
    return rollout


@dataclass
class RequestLog:
    """`away`: nobody answers."""

    rows: list[tuple[UUID, ArmMinute]] = field(default_factory=list)
    usual: UsualValues = field(default_factory=lambda: UsualValues({}, {}))
    away: bool = False
    asked: int = 0

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
        """The minute that began `ago` minutes before this one: (requests, errors) of both arms."""
        minute = int(this_minute().timestamp()) // 60 - ago
        for variant, (requests, errors), factor in (("target", target, slower), ("baseline", baseline, 1.0)):
            if requests:
                self.rows.append((rollout.pk, _row(minute, stage, variant, requests, errors, factor)))

    def arm_minutes(
        self, project_id: UUID, rollout_id: UUID, start: datetime, end: datetime, **_: Any
    ) -> list[ArmMinute]:
        self.asked += 1
        if self.away:
            raise AnalyticsUnavailableError("away")
        first, last = int(start.timestamp()) // 60, int(end.timestamp()) // 60
        return sorted(
            (row for owner, row in self.rows if owner == rollout_id and first <= row.minute < last),
            key=lambda row: (row.minute, row.stage, row.variant),
        )

    def usual_values(self, *_: Any, **__: Any) -> UsualValues:
        if self.away:
            raise AnalyticsUnavailableError("away")
        return self.usual


def _row(minute: int, stage: int, variant: str, requests: int, errors: int, factor: float) -> ArmMinute:
    answered = requests - errors
    latency: Mapping[int, int] = _spread(LATENCY_MS * factor, answered)
    cost: Mapping[int, int] = _spread(COST_UNITS, answered)
    return ArmMinute(
        minute=minute,
        stage=stage,
        variant=variant,
        requests=requests,
        errors=errors,
        allocated=requests,
        latency=latency,
        latency_ms=int(LATENCY_MS * factor * answered),
        cost=cost,
        cost_usd=Decimal(COST_UNITS * answered) / 10**10,
    )


def _spread(middle: float, count: int) -> dict[int, int]:
    """Around the middle, the same for every arm and minute of a size."""
    found: dict[int, int] = {}
    for number in range(count):
        bin_number = bin_of(middle * (0.5 + (number * 7 % 11) / 10))
        found[bin_number] = found.get(bin_number, 0) + 1
    return found
