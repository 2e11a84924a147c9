"""The figures of online evaluations in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.utils import timezone

from analytics.models import OnlineEvaluation
from analytics.online_evaluations.selectors import Counts, Progress
from core.ui.formats import NONE, age, money, number

_REASONS = {
    "judge_failed": "judge failed",
    "unknown_cost": "price not known",
    "name_too_long": "name too long",
    "too_many_tokens": "too many tokens for a minute",
    "budget": "budget spent",
    "no_text": "no text",
    "masked": "masked by a guardrail",
    "too_old": "too old",
    "disabled": "paused or archived",
}


def missing_in_words(counts: Counts) -> str:
    """Returns how many answers that were due have no score and why, the most frequent reason first."""
    by = {**counts.failed_by, **counts.skipped_by}
    if not by:
        return "none"
    parts = [f"{_REASONS.get(reason, reason.replace('_', ' '))} {number(count)}" for reason, count in _most_first(by)]
    return f"{number(sum(by.values()))}: {', '.join(parts)}"


def due_in_words(progress: Progress) -> str:
    """Returns how many answers wait, and since when the oldest of them."""
    due, oldest = progress.counts.due, progress.oldest_due_at
    if not due or oldest is None:
        return number(due)
    return f"{number(due)}, {oldest_in_words(oldest)}"


def oldest_in_words(oldest: datetime) -> str:
    if oldest > timezone.now():
        return "none of them yet to be judged"
    return f"oldest for {age(oldest)}"


def spent_in_words(row: OnlineEvaluation, progress: Progress) -> str:
    """Returns what was spent in this month of its budget."""
    if row.monthly_budget_usd is None and not progress.spent_usd:
        return NONE
    spent = money(progress.spent_usd)
    if row.monthly_budget_usd is not None:
        spent = f"{spent} of {money(row.monthly_budget_usd)}"
    return f"{spent}, spent out" if progress.is_spent_out else spent


def _most_first(by: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(by.items(), key=lambda one: (-one[1], one[0]))
