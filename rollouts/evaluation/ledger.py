from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

from rollouts.evaluation.statistics.clustering import Variation
from rollouts.evaluation.statistics.evidence import added, log_mean
from rollouts.evaluation.statistics.mixture import begun, evidence
from rollouts.evaluation.statistics.strata import Strata

LITTLE_CLUSTERING = 2.0
"""The design effect below which the requests of sticky allocation are believed without the evidence of their users."""
AGREE_AT = math.log(10.0)
"""The ln E of the users that is enough beside failing requests."""


@dataclass(frozen=True, slots=True)
class UserState:
    """Evidence that users who are new to the target fare worse, each counted once. The fields mean the same as in
    `Ledger`; `looks` are what `safe` is there, by look at the stage's cohort (see `cohort`), empty without looks."""

    worse: tuple[float, ...]
    evidence: float = 0.0
    peak: float = 0.0
    looks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Ledger:
    """The evidence on one metric or evaluator.

    `worse` and `safe` are logarithms of e-values by tilt or stake: that the target is worse, summed over the processes
    that have begun (see `mixture`), and that it is better than the margin. `evidence` is ln E, `peak` its highest so
    far.

    The other fields are for sticky allocation. Every block counts for `design` times less, as known before the block
    (None: unknown, so nothing is judged); `next_design` applies to later blocks. `block_design` is the latest block's
    own, and applies if it is larger (see `one_user`). `variation` is the baseline's, against which the design is
    measured.
    """

    worse: tuple[float, ...]
    safe: tuple[float, ...]
    evidence: float = 0.0
    peak: float = 0.0
    design: float | None = 1.0
    next_design: float | None = 1.0
    block_design: float = 1.0
    strata: Strata = field(default_factory=Strata)
    variation: Variation = field(default_factory=Variation)
    users: UserState | None = None

    @property
    def safety(self) -> float:
        """Returns ln S: of the requests or, if that is higher, of the users."""
        requests = log_mean(self.safe)
        return max(requests, log_mean(self.users.looks)) if self.users and self.users.looks else requests

    @property
    def user_evidence(self) -> float | None:
        return self.users.peak if self.users else None

    @property
    def is_independent(self) -> bool:
        return self.next_design is not None and max(self.next_design, self.block_design) < LITTLE_CLUSTERING

    @property
    def users_agree(self) -> bool:
        return self.users is not None and self.users.peak >= AGREE_AT

    def with_factors(self, worse: tuple[float, ...], safe: tuple[float, ...], waiting: float, **changes: Any) -> Self:
        """Adds the factors of one more block. Each is raised to the power 1/D, which keeps its mean at most 1.
        `waiting` is the weight of the processes that have not begun."""
        if self.design is None:
            return replace(self, **changes)
        design = max(self.design, self.block_design)
        summed = tuple([log + factor / design for log, factor in zip(self.worse, worse, strict=True)])
        safe = tuple([log + factor / design for log, factor in zip(self.safe, safe, strict=True)])
        found = evidence(summed, waiting)
        return replace(self, worse=summed, safe=safe, evidence=found, peak=max(self.peak, found), **changes)

    def with_users(self, factors: tuple[float, ...] | None, waiting: float) -> Self:
        if self.users is None or factors is None:
            return self
        worse = added(self.users.worse, factors)
        found = evidence(worse, waiting)
        return replace(self, users=replace(self.users, worse=worse, evidence=found, peak=max(self.users.peak, found)))

    def with_look(self, number: int, factor: float) -> Self:
        if self.users is None:
            return self
        looks = tuple([log + factor * (number == place) for place, log in enumerate(self.users.looks)])
        return replace(self, users=replace(self.users, looks=looks))

    def with_process(self, weight: float) -> Self:
        users = self.users and replace(
            self.users,
            worse=begun(self.users.worse, weight),
            # What the looks of a stage found is staked anew on all looks of the next one.
            looks=(log_mean(self.users.looks),) * len(self.users.looks),
        )
        return replace(self, worse=begun(self.worse, weight), users=users)
