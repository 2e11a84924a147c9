from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from gateway.limits.keys import Scope, minute_of
from gateway.limits.minute_limits import NO_CALLER, AppliedLimits, Caller

# Redis is away, and the project refuses then what it cannot count (`Admission.refused_by`).
UNCOUNTED = "uncounted"


# These classes are structs, because a frozen dataclass costs five times as much to create.
class Claim(msgspec.Struct, frozen=True, gc=False):
    """A request's estimated use: `tokens`, and `cost` in units of 10^-10 dollars. `session_id` may be empty."""

    request_id: str
    project: str
    session_id: str
    arrived_us: int
    tokens: int
    cost: int
    caller: Caller = NO_CALLER

    @property
    def minute(self) -> int:
        return minute_of(self.arrived_us)


class Lender(Protocol):
    def end(self, settlement: Settlement, *, at_once: bool) -> None: ...


class Reservation(msgspec.Struct):
    """An admitted claim and its limits.

    `name` is the reservation in Redis, empty if Redis was down. `allowance` is the one it was taken from, until Redis
    has been told.
    """

    claim: Claim
    name: str
    applied: AppliedLimits
    allowance: Lender | None = None

    def scopes(self) -> list[Scope]:
        return [budget.scope for budget in self.applied.budgets]


class Settlement(msgspec.Struct):
    reservation: Reservation
    tokens: int
    cost: int


class Admission(msgspec.Struct, frozen=True):
    """The answer to a claim. `refused_by` is empty or a limit's name: `requests`, `tokens`, `month` or `session` of the
    project; behind `team_`, `key_` or `user_` `requests`, `tokens`, `concurrency`, `month` or `total`; or UNCOUNTED.

    `requests` and `tokens` of the minute are those of the limit with the least left, including this request if
    admitted; None without such a limit. `month_is_spent`: the project's monthly budget is exhausted, not counting
    reservations. `left` is what the refusing budget has left, in units, reservations counted; 0 of another limit.
    """

    refused_by: str
    requests: int | None
    tokens: int | None
    reservation: Reservation | None
    month_is_spent: bool = False
    requests_limit: int | None = None
    tokens_limit: int | None = None
    left: int = 0


def answer_to(
    reservation: Reservation, refused_by: str, counts: Sequence[int], *, month_is_spent: bool = False
) -> Admission:
    """`refused_by` may have behind a bar what is left of a budget."""
    requests = requests_limit = tokens = tokens_limit = None
    for place, counter in enumerate(reservation.applied.counters):
        limit, used = counter.requests_limit, counts[2 * place]
        if limit is not None and (requests_limit is None or limit - used < requests_limit - (requests or 0)):
            requests, requests_limit = used, limit
        limit, used = counter.tokens_limit, counts[2 * place + 1]
        if limit is not None and (tokens_limit is None or limit - used < tokens_limit - (tokens or 0)):
            tokens, tokens_limit = used, limit
    admitted = None if refused_by else reservation
    name, _, left = refused_by.partition("|")
    return Admission(
        name, requests, tokens, admitted, month_is_spent, requests_limit, tokens_limit, int(left) if left else 0
    )
