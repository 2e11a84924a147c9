"""Response shapes of the gateway's part of the management API that no serializer defines, for the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict


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


class Usage(TypedDict):
    minute: UsedMinute
    month: UsedMonth
    session: NotRequired[UsedSession]
