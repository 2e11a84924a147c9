"""What a request asks of its project's limits, and what it holds while it is under way."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.limits.keys import Scope, minute_of, month_of, month_scope, session_scope
from gateway.snapshot.settings import LimitSettings


@dataclass(frozen=True, slots=True)
class Claim:
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

    def month_scope(self, limits: LimitSettings) -> Scope | None:
        return None if limits.monthly_budget_usd is None else month_scope(self.project, month_of(self.arrived_us))

    def session_scope(self, limits: LimitSettings) -> Scope | None:
        if limits.session_budget_usd is None or not self.session_id:
            return None
        return session_scope(self.project, self.session_id)


@dataclass(slots=True)
class Held:
    """A claim that was admitted. `name` is the reservation in Redis, empty when Redis was away."""

    claim: Claim
    name: str
    counts_tokens: bool
    month: Scope | None
    session: Scope | None

    def scopes(self) -> list[Scope]:
        return [scope for scope in (self.month, self.session) if scope is not None]


@dataclass(frozen=True, slots=True)
class Admission:
    """`refused_by` is empty, `requests`, `tokens`, `month` or `session`. `requests` and `tokens` are those of the
    minute, this request included when it was admitted; None when the refusal came before they were looked at.
    `month_spent` in units, without what is reserved."""

    refused_by: str
    requests: int | None
    tokens: int | None
    held: Held | None
    month_spent: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """A scope's spend in units. `unsure`: it may lack what only the request log knows yet, of requests that arrived
    before `since_us`."""

    spent: int
    reserved: int
    unsure: bool
    since_us: int
