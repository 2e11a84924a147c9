from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.queries.spend import project_spend
from analytics.queries.summed import Scope
from analytics.queries.usage import Interval, IntervalCosts, list_usage
from gateway.limits.figures import Figures, MinuteRates, Spend
from gateway.limits.keys import month_limits
from gateway.project_settings.limits import ProjectLimits, limits_of
from gateway.reports.caller_usage import spend_shown
from gateway.selectors import project_settings

_DAY, RECENT = timedelta(days=1), timedelta(days=7)


@dataclass(frozen=True, slots=True)
class _Now:
    at: datetime

    @property
    def minute(self) -> datetime:
        return self.at.replace(second=0, microsecond=0)

    @property
    def month(self) -> str:
        return self.at.strftime("%Y-%m")


def usage_of(project_id: UUID, session_id: str, now: datetime | None = None) -> dict[str, Any]:
    """An empty `session_id` leaves the session's budget out.

    Raises AnalyticsUnavailableError or AnalyticsLimitError if neither Redis nor the request log knows a spend.
    """
    moment = _Now(now or datetime.now(UTC))
    limits = limits_of(project_settings(project_id))
    figures = Figures()
    shown = {
        "minute": _minute(figures, project_id, limits, moment),
        "month": _month(figures.month(project_id, moment.month), limits, moment.at),
    }
    if session_id:
        spend = figures.session(project_id, session_id)
        shown["session"] = {"session_id": session_id, **spend_shown(spend, limits.session_budget_usd)}
    return shown


def month_usage(project_id: UUID, now: datetime | None = None) -> dict[str, Any]:
    moment = _Now(now or datetime.now(UTC))
    figures = Figures()
    return _month(figures.month(project_id, moment.month), limits_of(project_settings(project_id)), moment.at)


def forecast(spent: Decimal, now: datetime) -> Decimal:
    """The first day counts whole, because an hour is too short a base."""
    start, end = month_limits(now.strftime("%Y-%m"))
    elapsed = max(now - start, _DAY)
    return max(spent, spent * Decimal((end - start) / elapsed))


def recent_forecast(project_id: UUID, spent: Decimal, now: datetime) -> Decimal:
    since = (now - RECENT).replace(minute=0, second=0, microsecond=0)
    _, end = month_limits(now.strftime("%Y-%m"))
    return spent + project_spend(project_id, since, now) * Decimal((end - now) / (now - since))


def _minute(figures: Figures, project_id: UUID, limits: ProjectLimits, now: _Now) -> dict[str, Any]:
    rpm, tpm = limits.requests_per_minute, limits.tokens_per_minute
    rates = figures.minute(project_id, calendar.timegm(now.minute.utctimetuple()) // 60)
    if figures.is_away or rpm is None or tpm is None:
        rates = _completed(figures, rates, project_id, now, (rpm, tpm))
    return {
        "start": _text(now.minute),
        "resets_in_seconds": 60 - now.at.second,
        "requests": _rate(rates.requests, rpm),
        "tokens": _rate(rates.tokens, tpm),
    }


def _completed(
    figures: Figures, rates: MinuteRates, project_id: UUID, now: _Now, limits: tuple[int | None, int | None]
) -> MinuteRates:
    try:
        _, (of_log,) = list_usage(Scope(project_id, now.minute, now.at), Interval.MINUTE, row=IntervalCosts, limit=1)
    except (AnalyticsUnavailableError, AnalyticsLimitError):
        return rates
    rpm, tpm = limits
    return MinuteRates(
        of_log.request_count if figures.is_away or rpm is None else rates.requests,
        of_log.total_tokens if figures.is_away or tpm is None else rates.tokens,
    )


def _rate(used: int | None, limit: int | None) -> dict[str, Any]:
    used = used or 0
    return {"used": used, "limit": limit, "remaining": None if limit is None else max(limit - used, 0)}


def _month(spend: Spend, limits: ProjectLimits, now: datetime) -> dict[str, Any]:
    start, end = month_limits(now.strftime("%Y-%m"))
    return {
        "start": _text(start),
        "end": _text(end),
        **spend_shown(spend, limits.monthly_budget_usd),
        "hard_stop": limits.hard_stop,
        "forecast_usd": round(float(forecast(spend.spent_usd, now)), 10),
    }


def _text(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
