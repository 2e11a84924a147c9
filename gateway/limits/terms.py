"""What the requests of a project have in common for a minute, packed once for the scripts that admit and settle them:
packing all of it for each request would take longer than what Redis does with it."""

from __future__ import annotations

from decimal import Decimal

from gateway.limits.keys import MINUTE_US, Scope, month_of, month_scope, requests_key, tokens_key
from gateway.limits.scripts import ADMIT, SETTLE, Argument, packed
from gateway.limits.units import to_units
from gateway.snapshot.settings import LimitSettings

# The number of keys, the keys, the arguments.
_ADMISSION = ADMIT.begun(1 + 6 + 14)
_SETTLEMENT = SETTLE.begun(1 + 5 + 7)


class Terms:
    """`month` is None without a budget of the month, which is `month_budget` units."""

    __slots__ = (
        "_admission",
        "_limits",
        "_limits_without_session",
        "_nowhere",
        "_settlement",
        "counts_session",
        "counts_tokens",
        "limits",
        "minute",
        "month",
        "month_budget",
        "run_id",
    )

    def __init__(self, limits: LimitSettings, project: str, minute: int, *, lease_ms: int, run_id: str) -> None:
        """`run_id`: which start of Redis is asked."""
        self.limits = limits
        self.minute = minute
        self.run_id = run_id
        self.counts_tokens = limits.tokens_per_minute is not None
        self.counts_session = limits.session_budget_usd is not None
        budget = limits.monthly_budget_usd
        self.month = None if budget is None else month_scope(project, month_of(minute * MINUTE_US))
        self.month_budget = 0 if budget is None else to_units(budget)
        requests, tokens = requests_key(project, minute), tokens_key(project, minute)
        # A key that the script does not touch still has to lie on the same node.
        self._nowhere = packed((requests, requests))
        month = self._nowhere if self.month is None else self.month.packed
        self._admission = _ADMISSION + packed((6, requests, tokens)) + month
        self._settlement = _SETTLEMENT + packed((5, tokens)) + month
        rates = (_number(limits.requests_per_minute), _number(limits.tokens_per_minute))
        to_month = (_money(budget), int(limits.hard_stop))
        rest = (lease_ms, run_id, limits.set_at_us)
        self._limits = packed((*rates, *to_month, _money(limits.session_budget_usd), *rest))
        self._limits_without_session = packed((*rates, *to_month, "", *rest))

    def admission(self, session: Scope | None, own: tuple[Argument, ...]) -> bytes:
        """The command that runs admit.lua; `own` are its arguments from the reservation on."""
        if session is None:
            return b"".join((self._admission, self._nowhere, self._limits_without_session, packed(own)))
        return b"".join((self._admission, session.packed, self._limits, packed(own)))

    def settlement(self, session: Scope | None, own: tuple[Argument, ...]) -> bytes:
        """The command that runs settle.lua; `own` are its arguments from the reservation on."""
        keys = self._nowhere if session is None else session.packed
        counted = _COUNTED[self.month is not None, session is not None]
        return b"".join((self._settlement, keys, counted, packed(own)))


_BOTH = (False, True)
_COUNTED = {(month, session): packed((int(month), int(session))) for month in _BOTH for session in _BOTH}


def _number(limit: int | None) -> str:
    return "" if limit is None else str(limit)


def _money(budget: Decimal | None) -> str:
    return "" if budget is None else str(to_units(budget))
