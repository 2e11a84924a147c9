"""The limits of what the service asks in the background, which comes after the traffic of clients. No I/O.

Judges of online evaluations and experiments count in the same minutes, places and budgets as everybody, and are
admitted only up to a share of each limit: the last of a limit is left to clients, who take it all where they need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal

from core.caller_limits import CallerLimits
from core.keys.services import KeyRecord
from gateway.project_settings.limits import ProjectLimits
from gateway.snapshot.project import ProjectSnapshot
from integrations.pricing.cost import PLACES

RATE_SHARE = Decimal("0.5")
"""Of requests and tokens of a minute, and of requests at the same time."""
BUDGET_SHARE = Decimal("0.9")


def behind_clients(snapshot: ProjectSnapshot, key_id: int = 0) -> ProjectSnapshot:
    """Returns the project's configuration with the limits that background requests have, on the account of the key
    `key_id` where one is given."""
    every_user = snapshot.every_user
    return replace(
        snapshot,
        limits=_of_project(snapshot.limits),
        keys=_keys(snapshot, key_id) if key_id else snapshot.keys,
        every_user=None if every_user is None else _of_caller(every_user),
        user_limits={name: None if one is None else _of_caller(one) for name, one in snapshot.user_limits.items()},
        # Plans know the limits of clients.
        plans={},
    )


def _keys(snapshot: ProjectSnapshot, key_id: int) -> Mapping[str, KeyRecord]:
    own = {
        name: replace(
            key,
            limits=None if key.limits is None else _of_caller(key.limits),
            team_limits=None if key.team_limits is None else _of_caller(key.team_limits),
        )
        for name, key in snapshot.keys.items()
        if key.id == key_id
    }
    return {**snapshot.keys, **own}


def _of_project(limits: ProjectLimits) -> ProjectLimits:
    return replace(
        limits,
        requests_per_minute=_of_rate(limits.requests_per_minute),
        tokens_per_minute=_of_rate(limits.tokens_per_minute),
        monthly_budget_usd=_of_budget(limits.monthly_budget_usd),
    )


def _of_caller(limits: CallerLimits) -> CallerLimits:
    return replace(
        limits,
        requests_per_minute=_of_rate(limits.requests_per_minute),
        tokens_per_minute=_of_rate(limits.tokens_per_minute),
        concurrent_requests=_of_rate(limits.concurrent_requests),
        monthly_budget_usd=_of_budget(limits.monthly_budget_usd),
        total_budget_usd=_of_budget(limits.total_budget_usd),
    )


def _of_rate(limit: int | None) -> int | None:
    return None if limit is None else int(limit * RATE_SHARE)


def _of_budget(budget: Decimal | None) -> Decimal | None:
    return None if budget is None else (budget * BUDGET_SHARE).quantize(PLACES, rounding=ROUND_DOWN)
