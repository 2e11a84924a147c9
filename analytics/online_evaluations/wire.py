"""The JSON of online evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict
from uuid import UUID

from analytics.evaluators.selectors import title_of
from analytics.models import OnlineEvaluation
from analytics.models.online_evaluations import SkipReason
from analytics.online_evaluations.selectors import Counts, Labels, Progress, scoring_number_of


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


class SkippedTasks(TypedDict):
    budget: int
    no_text: int
    masked: int
    too_old: int
    disabled: int


class TaskCounts(TypedDict):
    """How many answers the sample took (`sampled`), and what became of them. `missing` have no score: failed or
    skipped."""

    sampled: int
    due: int
    done: int
    missing: int
    failed: int
    failed_by_reason: dict[str, int]
    skipped: int
    skipped_by_reason: SkippedTasks


class LabelCounts(TypedDict):
    """How many of the sampled answers a person is to label (`sampled`), and what became of these labels. `missing`
    were not given within 7 days, or their answer has no score."""

    sampled: int
    due: int
    given: int
    missing: int


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
    number = scoring_number_of(row)
    return {
        "id": row.pk,
        "evaluator": {
            "evaluator_id": row.evaluator_id,
            "name": row.evaluator.name,
            "kind": row.evaluator.kind,
            "version": number,
            "is_newest": row.version_id is None,
            "title": title_of(row.evaluator.name, number),
        },
        "filter": row.filter,
        "rate": row.rate,
        "matched": row.matched,
        "label_share": row.label_share,
        "monthly_budget_usd": None if row.monthly_budget_usd is None else float(row.monthly_budget_usd),
        "state": row.state,
        "created_by": row.created_by,
        "created_at": row.created_at,
    }


def evaluation_detail(row: OnlineEvaluation, progress: Progress) -> OnlineEvaluationDetail:
    return {
        **evaluation_entry(row),
        "tasks": _counts(progress.counts),
        "last_hour": _counts(progress.last_hour),
        "labels": _labels(progress.labels),
        "oldest_due_at": progress.oldest_due_at,
        "sampled_until": row.sampled_until,
        "spent_usd": float(progress.spent_usd),
        "reserved_usd": float(progress.reserved_usd),
        "is_spent_out": progress.is_spent_out,
        "last_day_usd": float(progress.last_day_usd),
    }


def _labels(labels: Labels) -> LabelCounts:
    return {"sampled": labels.sampled, "due": labels.due, "given": labels.given, "missing": labels.missing}


def _counts(counts: Counts) -> TaskCounts:
    return {
        "sampled": counts.sampled,
        "due": counts.due,
        "done": counts.done,
        "missing": counts.failed + counts.skipped,
        "failed": counts.failed,
        "failed_by_reason": dict(sorted(counts.failed_by.items())),
        "skipped": counts.skipped,
        "skipped_by_reason": _skipped(counts.skipped_by),
    }


def _skipped(by: Mapping[str, int]) -> SkippedTasks:
    return {
        "budget": by.get(SkipReason.BUDGET, 0),
        "no_text": by.get(SkipReason.NO_TEXT, 0),
        "masked": by.get(SkipReason.MASKED, 0),
        "too_old": by.get(SkipReason.TOO_OLD, 0),
        "disabled": by.get(SkipReason.DISABLED, 0),
    }
