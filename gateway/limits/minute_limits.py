"""The limits that a project's requests of one minute share, packed once for all their batches."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from gateway.limits.keys import MINUTE_US, Scope, month_of, month_scope, requests_key, tokens_key
from gateway.limits.scripts import BATCH, packed
from gateway.limits.units import to_units
from gateway.project_settings.settings import LimitSettings

# The numbers of keys (requests, tokens, and two of the month) and of arguments for the limits.
_KEYS, _LIMITS = 4, 8


class MinuteLimits:
    """A project's limits in one minute. `month` is None without a monthly budget, which is `month_budget` units."""

    __slots__ = (
        "_keys",
        "_limits",
        "counts_session",
        "counts_tokens",
        "limits",
        "minute",
        "month",
        "month_budget",
        "run_id",
    )

    def __init__(self, limits: LimitSettings, project: str, minute: int, *, lease_ms: int, run_id: str) -> None:
        """`run_id` identifies one start of the Redis server."""
        self.limits = limits
        self.minute = minute
        self.run_id = run_id
        self.counts_tokens = limits.tokens_per_minute is not None
        self.counts_session = limits.session_budget_usd is not None
        budget = limits.monthly_budget_usd
        self.month = None if budget is None else month_scope(project, month_of(minute * MINUTE_US))
        self.month_budget = 0 if budget is None else to_units(budget)
        requests, tokens = requests_key(project, minute), tokens_key(project, minute)
        # Keys that the script does not touch have to lie on the same node too.
        month = packed((requests, requests)) if self.month is None else self.month.packed
        self._keys = packed((requests, tokens)) + month
        rates = (_number(limits.requests_per_minute), _number(limits.tokens_per_minute))
        budgets = (_money(budget), int(limits.hard_stop), _money(limits.session_budget_usd))
        self._limits = packed((*rates, *budgets, lease_ms, run_id, limits.set_at_us))

    def command(self, own: bytes, sessions: Collection[Scope]) -> bytes:
        """Returns the command that runs batch.lua; `own` is its last argument."""
        keys = _KEYS + 2 * len(sessions)
        begin = BATCH.begun(1 + keys + _LIMITS + 1) + packed((keys,)) + self._keys
        return b"".join((begin, *[session.packed for session in sessions], self._limits, packed((own,))))


def _number(limit: int | None) -> str:
    return "" if limit is None else str(limit)


def _money(budget: Decimal | None) -> str:
    return "" if budget is None else str(to_units(budget))
