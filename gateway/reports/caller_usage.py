from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from core.caller_limits import CallerLimits
from core.keys.services import limits_of
from core.models import ApiKey, Team
from core.wire.shown import shown_as
from gateway.limits.figures import Figures, Spend
from gateway.limits.keys import caller_part, minute_of
from gateway.project_settings.limits import limits_of_every_user
from gateway.reports.shapes import UsedSpend
from gateway.selectors import end_user_limits, project_settings

_NO_LIMITS = CallerLimits()


def key_usage(project_id: UUID, key: ApiKey, now: datetime | None = None) -> dict[str, Any]:
    """Raises AnalyticsUnavailableError or AnalyticsLimitError if neither Redis nor the request log knows a spend."""
    moment, limits = now or datetime.now(UTC), limits_of(key) or _NO_LIMITS
    figures = Figures()
    spent = figures.caller_month(project_id, moment.strftime("%Y-%m"), key_id=key.pk)
    return {
        "id": key.pk,
        "name": key.name,
        **_rates(figures, project_id, limits, moment, caller_part(key.pk)),
        "month": spend_shown(spent, limits.monthly_budget_usd),
        "total": spend_shown(figures.caller_total(project_id, key_id=key.pk), limits.total_budget_usd),
    }


def team_usage(project_id: UUID, team: Team, now: datetime | None = None) -> dict[str, Any]:
    moment, limits = now or datetime.now(UTC), limits_of(team) or _NO_LIMITS
    figures = Figures()
    spent = figures.caller_month(project_id, moment.strftime("%Y-%m"), team_id=team.pk)
    return {
        "id": team.pk,
        "name": team.name,
        **_rates(figures, project_id, limits, moment, caller_part(team_id=team.pk)),
        "month": spend_shown(spent, limits.monthly_budget_usd),
        "total": spend_shown(figures.caller_total(project_id, team_id=team.pk), limits.total_budget_usd),
    }


def user_usage(project_id: UUID, user_id: str, now: datetime | None = None) -> dict[str, Any]:
    moment, named = now or datetime.now(UTC), end_user_limits(project_id)
    limits = (named[user_id] if user_id in named else limits_of_every_user(project_settings(project_id))) or _NO_LIMITS
    figures = Figures()
    spent = figures.caller_month(project_id, moment.strftime("%Y-%m"), user_id=user_id)
    return {
        "user_id": user_id,
        **_rates(figures, project_id, limits, moment, caller_part(user_id=user_id)),
        "month": spend_shown(spent, limits.monthly_budget_usd),
    }


def spend_shown(spend: Spend, budget: Decimal | None) -> UsedSpend:
    left = None if budget is None else float(max(budget - spend.spent_usd - spend.reserved_usd, Decimal(0)))
    return shown_as(UsedSpend, spend, budget_usd=None if budget is None else float(budget), remaining_usd=left)


def _rates(figures: Figures, project_id: UUID, limits: CallerLimits, now: datetime, caller: str) -> dict[str, Any]:
    found = figures.minute(project_id, minute_of(int(now.timestamp() * 1_000_000)), caller)
    return {
        "requests": _used(found.requests, limits.requests_per_minute),
        "tokens": _used(found.tokens, limits.tokens_per_minute),
        "concurrent_requests": _used(figures.open_requests(project_id, caller), limits.concurrent_requests),
    }


def _used(used: int | None, limit: int | None) -> dict[str, int | None]:
    if limit is None:
        return {"used": None, "limit": None, "remaining": None}
    return {"used": used or 0, "limit": limit, "remaining": max(limit - (used or 0), 0)}
