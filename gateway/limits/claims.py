"""What a request asks of its project's limits, and what it holds while it is under way."""

from __future__ import annotations

import msgspec

from gateway.limits.keys import Scope, minute_of
from gateway.limits.terms import Terms


# Structs and no dataclasses: a frozen dataclass costs five times as much to make.
class Claim(msgspec.Struct, frozen=True, gc=False):
    """`tokens` and `cost` (in units of 10^-10 dollars) are estimates; `session_id` may be empty."""

    request_id: str
    project: str
    session_id: str
    arrived_us: int
    tokens: int
    cost: int

    @property
    def minute(self) -> int:
        return minute_of(self.arrived_us)


class Held(msgspec.Struct):
    """A claim that was admitted, by which terms. `name` is the reservation in Redis, empty when Redis was away;
    `session` is None where no session is counted."""

    claim: Claim
    name: str
    terms: Terms
    session: Scope | None

    @property
    def counts_tokens(self) -> bool:
        return self.terms.counts_tokens

    @property
    def month(self) -> Scope | None:
        return self.terms.month

    def scopes(self) -> list[Scope]:
        return [scope for scope in (self.terms.month, self.session) if scope is not None]


class Admission(msgspec.Struct, frozen=True):
    """`refused_by` is empty, `requests`, `tokens`, `month` or `session`. `requests` and `tokens` are those of the
    minute, this request included when it was admitted; None when the refusal came before they were looked at.
    `month_is_spent`: the month's budget is used up, without what is reserved."""

    refused_by: str
    requests: int | None
    tokens: int | None
    held: Held | None
    month_is_spent: bool = False
