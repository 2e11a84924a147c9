"""What a worker may admit without asking Redis.

For each subject with much traffic it leases what the next tenth of a second needs (docs/limits.md, "Leased ahead";
scripts/allowances.lua).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from gateway.limits.batch_limits import BatchLimits
from gateway.limits.claims import Admission, Claim, Reservation, Settlement, answer_to
from gateway.limits.keys import ALLOWANCE_PREFIX, MINUTE_US
from gateway.limits.local import KnownSpends
from gateway.limits.minute_limits import AppliedLimits
from gateway.limits.rate import Rate

# The requests of a subject in a minute that ask Redis before its rate is measured.
_ASKED = 4
# Every command of a project reports on all of its allowances.
_MAX_OF_PROJECT = 64
# An allowance takes requests that arrived as much before it: a body may arrive slowly.
_EARLIER_US = 1_000_000
# Lua's numbers hold integers exactly up to twice this amount.
_MAX_AMOUNT = 2**52
_NO_CLAIM = Claim("", "", "", 0, 0, 0)


class Report(NamedTuple):
    subject: int
    name: str
    id: str
    first_slot: int
    taken: int
    kept: int
    kept_cost: int
    back: int
    back_tokens: int
    wanted: int
    tokens_each: int
    cost_each: int
    since: str


class Allowance:
    """What a worker has leased of one subject's limits in one minute.

    `open` are requests taken from it that Redis does not know yet, `ended` those of them that have ended. `is_reported`
    is True while a command that tells Redis is under way, `is_urgent` if the next one may not wait.
    """

    __slots__ = (
        "_admission",
        "_cost",
        "_first_slot",
        "_has_budgets",
        "_has_tokens",
        "_horizon",
        "_id",
        "_ids",
        "_late",
        "_minute",
        "_name",
        "_rate",
        "_report",
        "_requests",
        "_returns",
        "_since_us",
        "_taken",
        "_tokens",
        "_told",
        "applied",
        "ended",
        "is_reported",
        "is_retired",
        "is_urgent",
        "open",
    )

    def __init__(self, applied: AppliedLimits, minute: int, ids: Iterator[str], horizon: float, now: float) -> None:
        self.applied = applied
        self._minute = minute
        self._ids = ids
        self.open: dict[str, Reservation] = {}
        self.ended: list[Settlement] = []
        self._told: dict[str, Reservation] = {}
        self._late: list[Settlement] = []
        self.is_reported = self.is_urgent = False
        self._horizon = horizon
        self._has_tokens, self._has_budgets = bool(applied.token_counters), bool(applied.budgets)
        self._rate = Rate(now)
        self.is_retired = self._returns = False
        self._admission = Admission("", None, None, None)
        self._report: Report | None = None
        self._begin()

    def _begin(self) -> None:
        self._id = next(self._ids)
        self._name = ""
        self._requests = self._tokens = self._cost = 0
        self._first_slot = self._taken = 0
        self._since_us = 0

    @property
    def is_idle(self) -> bool:
        has_nothing = not (self.is_reported or self._name or self.open or self.ended)
        return has_nothing and (self._is_over or self._rate.is_low)

    @property
    def _is_over(self) -> bool:
        return self.is_retired or self.applied.is_replaced

    @property
    def is_due(self) -> bool:
        return bool(self._name or self.ended) and not self.is_reported

    @property
    def patience(self) -> float:
        return self._rate.patience

    @property
    def has_left(self) -> bool:
        return self._requests > 0

    @property
    def month_is_spent(self) -> bool:
        return self._admission.month_is_spent

    def lends(self, claim: Claim) -> bool:
        return claim.arrived_us // MINUTE_US == self._minute and not self._is_over

    def note(self, claim: Claim) -> None:
        self._rate.add(claim)

    def take(self, claim: Claim, name: str) -> Admission | None:
        tokens = self._tokens - claim.tokens if self._has_tokens else 0
        cost = self._cost - claim.cost if self._has_budgets else 0
        if self._requests < 1 or tokens < 0 or cost < 0 or claim.arrived_us < self._since_us:
            return None
        self._requests -= 1
        self._tokens, self._cost = tokens, cost
        self._taken += 1
        self._rate.add(claim)
        applied = self.applied
        reservation = Reservation(claim, name, applied)
        if applied.is_settled:
            reservation.allowance = self
            self.open[name] = reservation
        seen = self._admission
        return Admission(
            "",
            None if seen.requests is None else seen.requests - self._requests,
            None if seen.tokens is None else seen.tokens - tokens,
            reservation,
            seen.month_is_spent,
            seen.requests_limit,
            seen.tokens_limit,
        )

    def take_back(self, reservation: Reservation) -> None:
        claim = reservation.claim
        self.open.pop(reservation.name, None)
        self._requests += 1
        self._tokens += claim.tokens if self._has_tokens else 0
        self._cost += claim.cost if self._has_budgets else 0
        self._taken -= 1
        self._rate.remove(claim)

    def end(self, settlement: Settlement, *, at_once: bool) -> None:
        is_untold = self.open.pop(settlement.reservation.name, None) is not None
        (self.ended if is_untold else self._late).append(settlement)
        self.is_urgent = self.is_urgent or at_once

    def retire(self) -> None:
        self.is_retired = True

    def give_back(self) -> None:
        self._returns = True

    def told(self) -> tuple[list[str], list[Settlement]]:
        """Returns the open requests' reservations and the ended requests' use, for the command that is about to leave.

        Open requests stay with the allowance until the command is answered: otherwise a cluster that moves the
        project's keys could run a settlement too early.
        """
        self._told.update(self.open)
        names, ended = list(self.open), self.ended
        self.open, self.ended, self.is_urgent = {}, [], False
        return names, ended

    def release(self) -> list[Settlement]:
        for reservation in self._told.values():
            reservation.allowance = None
        late, self._told, self._late = self._late, {}, []
        return late

    def report(self, limits: BatchLimits, now: float, now_us: int) -> Report | None:
        """Returns what to tell Redis; None if Redis holds nothing of the allowance and has nothing to grant.

        `now` is the event loop's time. The requests taken come separately (`told`).
        """
        rate = self._rate
        rate.measure(now, self._horizon)
        target = 0 if self._is_over or self._returns else rate.ahead
        self._returns = False
        tokens_each = rate.tokens_each if self._has_tokens else 0
        cost_each = rate.cost_each if self._has_budgets else 0
        kept = self._affordable(min(self._requests, target), tokens_each, cost_each)
        wanted = target - kept
        if wanted * max(tokens_each, cost_each) > _MAX_AMOUNT:
            wanted = 0
        if not (wanted or self._name):
            return None
        kept_tokens, kept_cost = kept * tokens_each, kept * cost_each
        self._since_us = now_us - _EARLIER_US
        self._report = Report(
            limits.of_settlement(self.applied) if self._is_over else limits.of_admission(self.applied),
            self._name,
            self._id,
            self._first_slot,
            self._taken,
            kept,
            kept_cost,
            self._requests - kept,
            self._tokens - kept_tokens,
            wanted,
            tokens_each,
            cost_each,
            str(self._since_us),
        )
        self._first_slot += self._taken
        self._taken = 0
        self._requests, self._tokens, self._cost = kept, kept_tokens, kept_cost
        self.is_reported = True
        return self._report

    def granted(self, count: int, counts: Sequence[int], known: KnownSpends) -> None:
        report, self._report = self._report, None
        self.is_reported = False
        if report is None:
            return
        cost = report.kept_cost + count * report.cost_each
        self._name = f"{self._id}|{cost}|{report.since}" if report.kept + count else ""
        self._requests += count
        self._tokens += count * report.tokens_each
        self._cost += count * report.cost_each
        month = self.applied.month
        spent = month is not None and known.of(month.scope).spent >= month.units
        self._admission = answer_to(Reservation(_NO_CLAIM, "", self.applied), "", counts, month_is_spent=spent)

    def forget(self) -> list[Settlement]:
        """Gives up the rest, because Redis no longer knows the allowance or failed to answer; leases in Redis expire.

        Returns the ended requests. Redis has no reservation for them, so settling them puts their spends in doubt.
        """
        self.is_reported, self._report = False, None
        _, ended = self.told()
        self._begin()
        return [*ended, *self.release()]

    def _affordable(self, requests: int, tokens_each: int, cost_each: int) -> int:
        if tokens_each:
            requests = min(requests, self._tokens // tokens_each)
        if cost_each:
            requests = min(requests, self._cost // cost_each)
        return requests


class Allowances:
    def __init__(self, horizon: float) -> None:
        self._horizon = horizon
        worker = secrets.token_hex(8)
        self._ids = (f"{ALLOWANCE_PREFIX}{worker}-{number}" for number in count())
        self._loop = asyncio.get_running_loop()
        self._of_project: dict[str, list[Allowance]] = {}
        self._of_limits: dict[AppliedLimits, Allowance] = {}

    def find(self, applied: AppliedLimits) -> Allowance | None:
        return self._of_limits.get(applied)

    def note(self, applied: AppliedLimits, claim: Claim) -> None:
        found = self._of_limits.get(applied)
        if found is not None:
            found.note(claim)
            return
        applied.asked += 1
        if applied.asked < _ASKED or not self._horizon:
            return
        applied.asked = 0
        of_project = self._of_project.setdefault(claim.project, [])
        if len(of_project) < _MAX_OF_PROJECT:
            made = self._of_limits[applied] = Allowance(
                applied, claim.minute, self._ids, self._horizon, self._loop.time()
            )
            made.note(claim)
            of_project.append(made)

    def to_report(self, project: str) -> list[Allowance]:
        found = self._of_project.get(project)
        if found is None:
            return []
        for allowance in [each for each in found if each.is_idle]:
            found.remove(allowance)
            del self._of_limits[allowance.applied]
            allowance.retire()
        if not found:
            del self._of_project[project]
        return [allowance for allowance in found if not allowance.is_reported]

    def remove(self, project: str) -> list[Allowance]:
        found = self._of_project.pop(project, [])
        for allowance in found:
            del self._of_limits[allowance.applied]
            allowance.retire()
        return found

    def of(self, project: str) -> Iterable[Allowance]:
        return self._of_project.get(project, ())

    def patience(self, project: str) -> float:
        return min((allowance.patience for allowance in self.of(project) if allowance.is_due), default=0.0)

    def projects(self) -> list[str]:
        return list(self._of_project)

    def retire(self, project: str) -> None:
        for allowance in self.of(project):
            allowance.retire()

    def retire_all(self) -> None:
        for project in self._of_project:
            self.retire(project)

    def give_back(self, project: str, limit: str) -> bool:
        found = False
        for allowance in self.of(project):
            if (allowance.has_left or allowance.is_reported) and limit in allowance.applied.numbers:
                allowance.give_back()
                found = True
        return found
