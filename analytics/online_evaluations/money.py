"""The money of an online evaluation: one ledger per UTC month; the month is that of the judge's request."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from django.db import transaction
from django.utils import timezone

from analytics.models import EvaluationBudget, EvaluationTask, OnlineEvaluation
from core import ledger
from core.ledger import NOTHING


class Room(StrEnum):
    """The outcome of reserving money. LATER: requests in flight may free enough of it."""

    RESERVED = "reserved"
    LATER = "later"
    NONE = "none"


def month_of(moment: datetime) -> date:
    return moment.date().replace(day=1)


def reserve(task: EvaluationTask, amount: Decimal, now: datetime) -> Room:
    """Reserves the maximum cost of one try.

    The first task without room ends the month: later ones are skipped whatever their cost, so that the length of a text
    does not decide which answers are scored.
    """
    row = _budget_of(task.evaluation, month_of(now))
    if row.spent_out_at is not None:
        return Room.NONE
    own = EvaluationBudget.objects.filter(pk=row.pk)
    claimed = EvaluationTask.objects.filter(pk=task.pk, claim=task.claim)
    with transaction.atomic():
        # Tasks are locked before budgets, as by those who end tasks.
        if not claimed.update(reserved_usd=amount, reserved_in=row):
            return Room.LATER  # The claim has run out: another worker may have the task.
        if ledger.reserve(own, amount, limit="budget_usd"):
            return Room.RESERVED
        transaction.set_rollback(True)
    ended = own.filter(reserved_usd=0, spent_out_at=None, budget_usd=row.budget_usd).update(spent_out_at=timezone.now())
    return Room.NONE if ended else Room.LATER


def settle(costs: Iterable[tuple[EvaluationTask, Decimal]]) -> None:
    """Books the actual costs, in the transaction that ends the tries. Locks budgets in key order to avoid deadlocks."""
    sums: dict[int, tuple[Decimal, Decimal]] = {}
    for task, cost in costs:
        if task.reserved_in_id is not None:
            reserved, spent = sums.get(task.reserved_in_id, (NOTHING, NOTHING))
            sums[task.reserved_in_id] = (reserved + task.reserved_usd, spent + cost)
    for key in sorted(sums):
        reserved, spent = sums[key]
        ledger.settle(EvaluationBudget.objects.filter(pk=key), reserved=reserved, cost=spent)


def change_budget(evaluation: OnlineEvaluation, now: datetime) -> None:
    """Applies a changed budget to this month, in the caller's transaction.

    If it exceeds what was spent, the month goes on.
    """
    rows = EvaluationBudget.objects.filter(evaluation=evaluation, month=month_of(now))
    budget = evaluation.monthly_budget_usd
    if budget is not None:
        rows.exclude(budget_usd=budget).update(budget_usd=budget, spent_out_at=None)


def _budget_of(evaluation: OnlineEvaluation, month: date) -> EvaluationBudget:
    defaults = {"budget_usd": evaluation.monthly_budget_usd or NOTHING}
    return EvaluationBudget.objects.get_or_create(evaluation=evaluation, month=month, defaults=defaults)[0]
