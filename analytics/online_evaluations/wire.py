from __future__ import annotations

from datetime import datetime
from typing import Any, TypedDict
from uuid import UUID

from analytics.evaluators.selectors import title_of
from analytics.models import OnlineEvaluation
from analytics.online_evaluations.selectors import LabelCounts, Progress, TaskCounts, scoring_number_of
from core.wire.shown import shown_as


class EvaluatedBy(TypedDict):
    """The evaluator, with the version that scores now, which the scores name by `title`. `is_newest` says that no
    version was named: the newest one scores, also once there is another."""

    evaluator_id: UUID
    name: str
    kind: str
    version: int
    is_newest: bool
    title: str


class OnlineEvaluationEntry(TypedDict):
    id: UUID
    evaluator: EvaluatedBy
    filter: dict[str, Any]
    rate: float
    matched: bool
    label_share: float | None
    monthly_budget_usd: float | None
    state: str
    created_by: str
    created_at: datetime


class OnlineEvaluationDetail(OnlineEvaluationEntry):
    """`spent_usd` and `reserved_usd`, for what is being judged, are of this month of UTC; once `is_spent_out`, nothing
    more is judged in it. `last_day_usd` is what the tasks cost that ended in the last 24 hours. Minutes of record
    before `sampled_until` are sampled."""

    tasks: TaskCounts
    last_hour: TaskCounts
    labels: LabelCounts
    oldest_due_at: datetime | None
    sampled_until: datetime
    spent_usd: float
    reserved_usd: float
    is_spent_out: bool
    last_day_usd: float


def evaluation_entry(row: OnlineEvaluation) -> OnlineEvaluationEntry:
    return shown_as(OnlineEvaluationEntry, row, evaluator=_evaluator(row))


def evaluation_detail(row: OnlineEvaluation, progress: Progress) -> OnlineEvaluationDetail:
    return shown_as(
        OnlineEvaluationDetail,
        progress,
        row,
        evaluator=_evaluator(row),
        tasks=progress.tasks,
        last_hour=progress.last_hour,
        labels=progress.labels,
    )


def _evaluator(row: OnlineEvaluation) -> EvaluatedBy:
    number = scoring_number_of(row)
    title = title_of(row.evaluator.name, number)
    is_newest = row.version_id is None
    return shown_as(EvaluatedBy, row, row.evaluator, version=number, is_newest=is_newest, title=title)
