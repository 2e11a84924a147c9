"""The limits in the form of batch.lua: counters of a minute, concurrency limits and budgets.

One object stands for a limit in all requests of a minute.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from gateway.limits.keys import Scope, open_key, requests_key, tokens_key
from gateway.limits.scripts import packed
from gateway.limits.units import to_units

# The seconds for which Redis keeps a spend after its latest use.
MONTH_TTL, SESSION_TTL, TOTAL_TTL = 3_456_000, 2_592_000, 34_560_000


class Counter(msgspec.Struct, frozen=True, eq=False):
    """Requests and tokens of a minute. `holder` identifies the counter across minutes; `wire` is its batch entry."""

    holder: str
    minute: int
    requests_limit: int | None
    tokens_limit: int | None
    requests: str
    packed: bytes
    wire: tuple[str, int | bool, int | bool]


class Places(msgspec.Struct, frozen=True, eq=False):
    key: str
    limit: int
    packed: bytes
    wire: tuple[str, int]


class Budget(msgspec.Struct, frozen=True, eq=False):
    scope: Scope
    name: str
    units: int
    refuses: bool
    wire: tuple[str, int, bool, int, str]


def counter_of(
    project: str, minute: int, requests: int | None, tokens: int | None, *, name: str = "", caller: str = ""
) -> Counter | None:
    if requests is None and tokens is None:
        return None
    keys = requests_key(project, minute, caller), tokens_key(project, minute, caller)
    wire = (name, False if requests is None else requests, False if tokens is None else tokens)
    return Counter(f"{project}:{caller}", minute, requests, tokens, keys[0], packed(keys), wire)


def places_of(project: str, limit: int | None, *, name: str, caller: str) -> Places | None:
    if limit is None:
        return None
    key = open_key(project, caller)
    return Places(key, limit, packed((key,)), (name, limit))


def budget_of(
    scope: Scope, amount: Decimal | None, name: str, *, ttl: int, set_at_us: int, refuses: bool = True
) -> Budget | None:
    if amount is None:
        return None
    units = to_units(amount)
    return Budget(scope, name, units, refuses, (name, units, refuses, ttl, str(set_at_us)))
