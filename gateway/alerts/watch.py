"""Alerts once a month for each share of its budget that a project's spend reaches; a raised budget starts anew."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import QuerySet

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from gateway.alerts.recipients import deliveries_of_project
from gateway.limits.figures import Figures
from gateway.models import GatewaySettings
from gateway.selectors import rows_with_budget
from gateway.tables.alert import AlertDelivery, BudgetAlert

logger = logging.getLogger("gateway.alerts")

THRESHOLDS = (50, 80, 100)
# A request counts for its month when it ends, which may be after the month.
_AFTERMATH = timedelta(hours=1)


def is_any_watched() -> bool:
    return _watched().exists()


def raise_alerts(now: datetime | None = None) -> list[BudgetAlert]:
    """Each new alert has a delivery for each channel that is set. Several workers may run this at once."""
    now = now or datetime.now(UTC)
    raised: list[BudgetAlert] = []
    unknown = 0
    figures = Figures()
    for row in _watched().iterator():
        for month in _months(now):
            try:
                raised += _raise_of(figures, row, month)
            except (AnalyticsUnavailableError, AnalyticsLimitError):
                unknown += 1
    if unknown:
        logger.warning("budgets.not_looked_at count=%d", unknown)
    return raised


def reached(spent: Decimal, budget: Decimal) -> list[int]:
    """Returns the reached thresholds, in percent. The first spend reaches a budget of zero."""
    return [percent for percent in THRESHOLDS if spent > 0 and spent * 100 >= budget * percent]


def _watched() -> QuerySet[GatewaySettings]:
    return rows_with_budget().filter(values__budget_alert_enabled=True)


def _months(now: datetime) -> Iterable[str]:
    return dict.fromkeys([(now - _AFTERMATH).strftime("%Y-%m"), now.strftime("%Y-%m")])


def _raise_of(figures: Figures, row: GatewaySettings, month: str) -> list[BudgetAlert]:
    budget = row.settings.monthly_budget_usd
    if budget is None:
        return []
    # What was raised of a larger budget was reached of this one as well.
    alerts = BudgetAlert.objects.for_project(row.project_id).filter(month=month, budget_usd__gte=budget)
    raised = set(alerts.values_list("threshold_percent", flat=True))
    if raised.issuperset(THRESHOLDS):
        return []
    spent = figures.month(row.project_id, month).spent_usd
    missing = [percent for percent in reached(spent, budget) if percent not in raised]
    made = [_raise(row, month, percent, spent, budget) for percent in missing]
    return [alert for alert in made if alert is not None]


def _raise(row: GatewaySettings, month: str, percent: int, spent: Decimal, budget: Decimal) -> BudgetAlert | None:
    with transaction.atomic():
        alert, is_new = BudgetAlert.objects.get_or_create(
            project_id=row.project_id,
            month=month,
            threshold_percent=percent,
            budget_usd=budget,
            defaults={"spent_usd": spent},
        )
        if not is_new:
            return None
        AlertDelivery.objects.bulk_create(deliveries_of_project(alert))
    logger.warning("budget.reached project_id=%s month=%s percent=%d", row.project_id, month, percent)
    return alert
