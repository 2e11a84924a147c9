from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypedDict
from uuid import UUID


class UsedRate(TypedDict):
    used: int
    limit: int | None
    remaining: int | None


class UsedMinute(TypedDict):
    start: datetime
    resets_in_seconds: int
    requests: UsedRate
    tokens: UsedRate


class UsedSpend(TypedDict):
    spent_usd: float
    reserved_usd: float
    budget_usd: float | None
    remaining_usd: float | None
    is_certain: bool


class UsedMonth(UsedSpend):
    start: datetime
    end: datetime
    hard_stop: bool
    forecast_usd: float


class UsedSession(UsedSpend):
    session_id: str


class CountedRate(TypedDict):
    used: int | None
    limit: int | None
    remaining: int | None


class UsedByKey(TypedDict):
    id: int
    name: str
    requests: CountedRate
    tokens: CountedRate
    concurrent_requests: CountedRate
    month: UsedSpend
    total: UsedSpend


class UsedByTeam(UsedByKey):
    pass


class UsedByUser(TypedDict):
    user_id: str
    requests: CountedRate
    tokens: CountedRate
    concurrent_requests: CountedRate
    month: UsedSpend


class Usage(TypedDict):
    minute: UsedMinute
    month: UsedMonth
    session: NotRequired[UsedSession]
    team: NotRequired[UsedByTeam]
    key: NotRequired[UsedByKey]
    user: NotRequired[UsedByUser]


ProblemKind = Literal[
    "error_share",
    "provider_down",
    "provider_degraded",
    "budget_spent",
    "budget_forecast",
    "rollout_rolled_back",
    "rollout_watch_warned",
    "alert_undelivered",
    "alert_firing",
    "alert_broken",
    "trace_export_failing",
    "shipping_behind",
    "records_lost",
    "dead_letters",
    "store_slow",
    "store_unavailable",
    "live_figures_unavailable",
]


class Problem(TypedDict):
    """One thing that is wrong. `subject` is what it is about: a provider's name, the id of a rollout, an alert or a
    trace destination, or empty. `value` has passed `threshold`, where the kind has them: a share from 0 to 1, or US
    dollars."""

    kind: ProblemKind
    severity: Literal["warning", "critical"]
    message: str
    subject: str
    value: float | None
    threshold: float | None
    at: datetime | None


class Problems(TypedDict):
    generated_at: datetime
    start_date: datetime
    end_date: datetime
    problems: list[Problem]


class DryRunDetail(TypedDict):
    detail: str
    count: int


class DryRunRule(TypedDict):
    guardrail: str
    found_count: int
    found_share: float
    found_share_low: float
    found_share_high: float
    refused_count: int
    refused_share: float
    refused_share_low: float
    refused_share_high: float
    details: list[DryRunDetail]
    examples: list[UUID]


class DryRunResult(TypedDict):
    start_date: datetime
    end_date: datetime
    request_count: int
    input_count: int
    without_content_count: int
    unreadable_count: int
    is_complete: bool
    refused_count: int
    refused_share: float
    refused_share_low: float
    refused_share_high: float
    refused_before_count: int
    rules: list[DryRunRule]
