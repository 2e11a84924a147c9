"""A project's limits as the scripts take them: text, '' for a limit that does not exist."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from gateway.limits.units import to_units
from gateway.snapshot.settings import LimitSettings


class Terms(msgspec.Struct, frozen=True):
    requests: str
    tokens: str
    month: str
    session: str
    hard_stop: int


_REMEMBERED = 4096
# By identity: a hash of the amounts costs more than the rest of an admission's arguments.
_known: dict[int, tuple[LimitSettings, Terms]] = {}


def terms_of(limits: LimitSettings) -> Terms:
    found = _known.get(id(limits))
    if found is None or found[0] is not limits:
        if len(_known) >= _REMEMBERED:
            _known.clear()
        found = _known[id(limits)] = (limits, _terms(limits))
    return found[1]


def _terms(limits: LimitSettings) -> Terms:
    return Terms(
        requests=_number(limits.requests_per_minute),
        tokens=_number(limits.tokens_per_minute),
        month=_money(limits.monthly_budget_usd),
        session=_money(limits.session_budget_usd),
        hard_stop=int(limits.hard_stop),
    )


def _number(limit: int | None) -> str:
    return "" if limit is None else str(limit)


def _money(budget: Decimal | None) -> str:
    return "" if budget is None else str(to_units(budget))
