"""Counts requests minute by minute and arm by arm, as the request log's queries do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from benchmarks.rollouts.counting import Flags, Floats, bins_of, counts, dollars, histograms, sums
from benchmarks.rollouts.crowd import Crowd, Ledger, Valued
from benchmarks.rollouts.requests import Requests
from benchmarks.rollouts.values import Values
from benchmarks.rollouts.weather import Conditions
from benchmarks.rollouts.worlds import Fault, World
from rollouts.evaluation import ArmCounts, ClusterSums, Metric
from rollouts.evaluation.counts import UserCounts
from rollouts.evaluation.statistics.grid import Histogram
from rollouts.evaluation.statistics.reference import reference_from

Clusters = tuple[dict[Metric, ClusterSums], dict[Metric, ClusterSums]]
"""The cluster sums of the baseline's users and of the target's."""
Minute = tuple[ArmCounts, ArmCounts, Clusters]
"""The counts of the target and of the baseline, and the cluster sums of both."""

_NONE = UserCounts()
_NO_CLUSTERS: Clusters = ({}, {})


class Tally:
    """Counts requests, and keeps the earlier requests of every user."""

    def __init__(self, world: World, values: Values, usual: tuple[Histogram, Histogram], crowd: Crowd | None) -> None:
        self._world = world
        self._values = values
        self._ledger = Ledger(crowd.buckets) if crowd else None
        self._alike = world.fault is None and not world.cancelled
        self._latency, self._cost = (reference_from(histogram) for histogram in usual)

    def settle(self, minutes: int) -> None:
        """Settles the minutes last counted: the first `minutes` have happened, the others have not."""
        if self._ledger:
            self._ledger.settle(minutes)

    def arms(self, requests: Requests, stage: int, weight: int, conditions: Conditions) -> list[Minute]:
        if self._ledger:
            self._ledger.begin(stage, weight)
        minutes = len(conditions.load)
        seen = _Seen(requests, self._world, minutes)
        latency, cost = self._drawn(requests, seen, stage, conditions)
        columns = seen.columns(self._units(requests))
        users, clusters = self._of_users(requests, seen, latency, cost, minutes)
        cells = [
            ArmCounts(*plain, *values, reasons=reasons, users=of_users)
            for plain, values, reasons, of_users in zip(
                columns, seen.valued(latency, cost), seen.reasons(), users, strict=True
            )
        ]
        return [(cells[2 * index + 1], cells[2 * index], clusters[index]) for index in range(minutes)]

    def _drawn(
        self, requests: Requests, seen: _Seen, stage: int, conditions: Conditions
    ) -> tuple[Floats, Floats] | tuple[None, None]:
        """Returns the latencies and costs of the answered requests."""
        world = self._world
        if not world.values:
            return None, None
        user = requests.user[seen.answered]
        harmed = requests.target[seen.answered] & (stage >= world.harm_from)
        slow = conditions.slow[requests.minute[seen.answered]]
        return (
            self._values.latency(user, np.where(harmed, world.latency_factor, 1.0) * slow),
            self._values.cost(user, np.where(harmed, world.cost_factor, 1.0)),
        )

    def _units(self, requests: Requests) -> Flags:
        """Returns the requests that are new units: all of them under random allocation, else the first of each user."""
        if not self._ledger:
            return np.ones(len(requests.minute), dtype=bool)
        units = np.zeros(len(requests.minute), dtype=bool)
        units[self._ledger.new_users(requests.minute, requests.user)] = True
        return units

    def _of_users(
        self, requests: Requests, seen: _Seen, latency: Floats | None, cost: Floats | None, minutes: int
    ) -> tuple[list[UserCounts], list[Clusters]]:
        if not self._ledger:
            return [_NONE] * (2 * minutes), [_NO_CLUSTERS] * minutes
        looks = [("error_rate", seen.judged, seen.errors[seen.judged].astype(float))]
        if not self._alike:
            looks.append(("unanswered", seen.counted, seen.unanswered[seen.counted].astype(float)))
        if latency is not None and cost is not None and self._latency and self._cost:
            slow = (bins_of(latency) > self._latency.slow_bin).astype(float)
            looks.append(("latency_p95", seen.answered, slow))
            looks.append(("latency_average", seen.answered, np.minimum(latency, self._latency.cap)))
            looks.append(("cost_per_request", seen.answered, np.minimum(cost, self._cost.cap)))
        by_metric: dict[str, list[dict[int, int]]] = {}
        clusters: list[Clusters] = [({}, {}) for _ in range(minutes)]
        for name, chosen, values in looks:
            valued = Valued(requests.minute[chosen], requests.user[chosen], requests.target[chosen], values)
            look = self._ledger.look(name, valued, minutes)
            # Without a fault of its own and clients who leave, the unanswered requests are the failed ones.
            names = (name, "unanswered") if name == "error_rate" and self._alike else (name,)
            is_mean = name in ("latency_average", "cost_per_request")
            for one in names:
                by_metric[one] = _by_cell(look.complete, minutes, is_mean=is_mean)
                if self._world.users and self._world.users.clusters_reported:
                    for index, (baseline, target) in enumerate(zip(look.baseline, look.target, strict=True)):
                        clusters[index][0][Metric(one)] = baseline
                        clusters[index][1][Metric(one)] = target
        return _users(by_metric, 2 * minutes), clusters


class _Seen:
    """The outcomes of requests, in the terms of the counts."""

    def __init__(self, requests: Requests, world: World, minutes: int) -> None:
        self._cells = 2 * requests.minute + requests.target
        self._number = 2 * minutes
        fault = world.fault
        breaks = requests.broken & ~requests.hit
        left, early = requests.left & ~requests.hit, requests.early & ~requests.hit
        self.counted = ~requests.hit
        self.errors = requests.failed & ~requests.hit
        self._by_reason = {Fault.FAILED: self.errors, Fault.LEFT: early}
        if fault is not None:
            if fault.is_error:
                self.errors = self.errors | breaks
            self._by_reason[fault] = self._by_reason[fault] | breaks if fault in self._by_reason else breaks
        self.unanswered = self.errors | early | breaks
        self.judged = self.counted & ~left & (self.errors | ~breaks)
        self.answered = self.judged & ~self.errors

    def columns(self, units: Flags) -> list[tuple[int, int, int, int, int]]:
        """Returns requests, unanswered, judged, errors and units of each arm of each minute."""
        masks = (self.counted, self.unanswered, self.judged, self.errors, units)
        return list(zip(*(counts(self._cells[mask], self._number) for mask in masks), strict=True))

    def reasons(self) -> list[dict[str, int]]:
        found: list[dict[str, int]] = [{} for _ in range(self._number)]
        for reason, mask in self._by_reason.items():
            for cell, count in Counter(self._cells[mask].tolist()).items():
                found[cell][reason.value] = count
        return found

    def valued(self, latency: Floats | None, cost: Floats | None) -> list[tuple[Histogram, int, Histogram, Decimal]]:
        if latency is None or cost is None:
            return [({}, 0, {}, dollars(0))] * self._number
        cells, number = self._cells[self.answered], self._number
        return list(
            zip(
                histograms(cells, bins_of(latency), number),
                sums(cells, latency, number),
                histograms(cells, bins_of(cost), number),
                map(dollars, sums(cells, cost, number)),
                strict=True,
            )
        )


def _by_cell(complete: Valued, minutes: int, *, is_mean: bool) -> list[dict[int, int]]:
    """Returns by cell the number of users with so many bad ones of five requests, or with a mean of five in this
    bin."""
    found: list[dict[int, int]] = [{} for _ in range(2 * minutes)]
    if not len(complete.minute):
        return found
    keys = bins_of(complete.value / 5) if is_mean else np.rint(complete.value).astype(np.int64)
    for cell, key in zip((2 * complete.minute + complete.target).tolist(), keys.tolist(), strict=True):
        found[cell][key] = found[cell].get(key, 0) + 1
    return found


def _users(by_metric: Mapping[str, list[dict[int, int]]], cells: int) -> list[UserCounts]:
    nothing: list[dict[int, int]] = [{} for _ in range(cells)]
    columns = (
        by_metric.get(name, nothing)
        for name in ("error_rate", "unanswered", "latency_p95", "latency_average", "cost_per_request")
    )
    return [UserCounts(*one) if any(one) else _NONE for one in zip(*columns, strict=True)]
