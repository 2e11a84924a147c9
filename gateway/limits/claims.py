"""A request's claim on its project's limits, and its reservation while it is in flight."""

from __future__ import annotations

import msgspec

from gateway.limits.keys import Scope, minute_of
from gateway.limits.minute_limits import MinuteLimits


# These classes are structs, because a frozen dataclass costs five times as much to create.
class Claim(msgspec.Struct, frozen=True, gc=False):
    """A request's estimated use: `tokens`, and `cost` in units of 10^-10 dollars. `session_id` may be empty."""

    request_id: str
    project: str
    session_id: str
    arrived_us: int
    tokens: int
    cost: int

    @property
    def minute(self) -> int:
        return minute_of(self.arrived_us)


class Reservation(msgspec.Struct):
    """An admitted claim with the limits of its minute. `name` is the reservation in Redis, empty when Redis was away;
    `session` is None where no session is counted."""

    claim: Claim
    name: str
    minute_limits: MinuteLimits
    session: Scope | None

    @property
    def counts_tokens(self) -> bool:
        return self.minute_limits.counts_tokens

    @property
    def month(self) -> Scope | None:
        return self.minute_limits.month

    def scopes(self) -> list[Scope]:
        return [scope for scope in (self.minute_limits.month, self.session) if scope is not None]


class Admission(msgspec.Struct, frozen=True):
    """The answer to a claim. `refused_by` is empty, `requests`, `tokens`, `month` or `session`. `requests` and `tokens`
    are the minute's, this request included when it was admitted; None when the refusal came before they were read.
    `month_is_spent` says that the month's budget is used up, reservations left out."""

    refused_by: str
    requests: int | None
    tokens: int | None
    reservation: Reservation | None
    month_is_spent: bool = False
