"""Limits of the service's background requests, which yield to the traffic of clients. No I/O.

Judges of online evaluations and experiments count against the same rate limits, concurrency and budgets as everybody,
but only up to a share of each limit: the rest is left to clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal
from typing import Any, TypeVar

from core.caller_limits import CallerLimits
from core.keys.services import KeyRecord
from gateway.project_settings.limits import ProjectLimits
from gateway.snapshot.project import ProjectSnapshot
from integrations.pricing.cost import PLACES

RATE_SHARE = Decimal("0.5")
"""Of requests and tokens of a minute, and of requests at the same time."""
BUDGET_SHARE = Decimal("0.9")

_RATES = ("requests_per_minute", "tokens_per_minute", "concurrent_requests")
_BUDGETS = ("monthly_budget_usd", "total_budget_usd")

Limits = TypeVar("Limits", ProjectLimits, CallerLimits)


def behind_clients(snapshot: ProjectSnapshot, key_id: int = 0) -> ProjectSnapshot:
    """The project's configuration with the limits of background requests, charged to the key `key_id` if given."""
    every_user = snapshot.every_user
    return replace(
        snapshot,
        limits=_behind(snapshot.limits),
        keys=_keys(snapshot, key_id) if key_id else snapshot.keys,
        every_user=None if every_user is None else _behind(every_user),
        user_limits={name: None if one is None else _behind(one) for name, one in snapshot.user_limits.items()},
        # Plans know the limits of clients.
        plans={},
    )


def _keys(snapshot: ProjectSnapshot, key_id: int) -> Mapping[str, KeyRecord]:
    own = {
        name: replace(
            key,
            limits=None if key.limits is None else _behind(key.limits),
            team_limits=None if key.team_limits is None else _behind(key.team_limits),
        )
        for name, key in snapshot.keys.items()
        if key.id == key_id
    }
    return {**snapshot.keys, **own}


def _behind(limits: Limits) -> Limits:
    rates: dict[str, Any] = {
        name: int(limit * RATE_SHARE) for name in _RATES if (limit := getattr(limits, name, None)) is not None
    }
    budgets: dict[str, Any] = {
        name: (budget * BUDGET_SHARE).quantize(PLACES, rounding=ROUND_DOWN)
        for name in _BUDGETS
        if (budget := getattr(limits, name, None)) is not None
    }
    return replace(limits, **rates, **budgets)
