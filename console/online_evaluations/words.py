from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from analytics.models import OnlineEvaluation
from analytics.online_evaluations.reasons import reasons_in_words
from analytics.online_evaluations.selectors import Progress, TaskCounts
from core.ui.formats import NONE, age, money, number


def missing_in_words(counts: TaskCounts) -> str:
    """Returns how many answers that were due have no score and why, the most frequent reason first."""
    skipped: Mapping[str, Any] = {**counts["skipped_by_reason"]}
    by = {**counts["failed_by_reason"], **{reason: count for reason, count in skipped.items() if count}}
    if not by:
        return "none"
    return f"{number(sum(by.values()))}: {reasons_in_words(by)}"


def due_in_words(progress: Progress) -> str:
    """Returns how many answers wait, and since when the oldest of them."""
    due, oldest = progress.tasks["due"], progress.oldest_due_at
    if not due or oldest is None:
        return number(due)
    return f"{number(due)}, {oldest_in_words(oldest)}"


def oldest_in_words(oldest: datetime) -> str:
    if oldest > timezone.now():
        return "waiting for ratings of users"
    return f"oldest for {age(oldest)}"


def spent_in_words(row: OnlineEvaluation, progress: Progress) -> str:
    if row.monthly_budget_usd is None and not progress.spent_usd:
        return NONE
    spent = money(progress.spent_usd)
    if row.monthly_budget_usd is not None:
        spent = f"{spent} of {money(row.monthly_budget_usd)}"
    return f"{spent}, no room for one more" if progress.is_spent_out else spent
