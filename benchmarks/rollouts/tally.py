from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.rollouts.counting import Flags, Floats, bins_of, counts, dollars, histograms, sums
from benchmarks.rollouts.crowd import Crowd, Ledger, Valued, by_minute
from benchmarks.rollouts.requests import Requests
from benchmarks.rollouts.weather import Conditions
from benchmarks.rollouts.worlds import Fault, World
from rollouts.evaluation import ArmCounts, ClusterSums, Metric, MinuteUsers
from rollouts.evaluation.cohort import LEAST_REQUESTS, SHARE_UNIT
from rollouts.evaluation.counts import UserCounts
from rollouts.evaluation.policy import EXACT
from rollouts.evaluation.statistics.grid import BINS_PER_MARGIN, Histogram
from rollouts.evaluation.statistics.reference import reference_from

Clusters = tuple[dict[Metric, ClusterSums], dict[Metric, ClusterSums]]
"""The cluster sums of the baseline's users and of the target's."""
Minute = tuple[ArmCounts, ArmCounts, Clusters]
"""The counts of the target and of the baseline, and the cluster sums of both."""

_FIELDS = {
    Metric.ERROR_RATE: "errors",
    Metric.UNANSWERED: "unanswered",
    Metric.LATENCY_P95: "slow",
    Metric.LATENCY_AVERAGE: "latency",
    Metric.COST: "cost",
    **{metric: metric.value for metric in EXACT},
}
"""The fields of `UserCounts`."""
_EASED, _QUANTITIES = "eased", ("latency", "cost")
_NONE = UserCounts()
_NO_CLUSTERS: Clusters = ({}, {})

_Look = tuple[tuple[Metric, ...], Flags, Floats]
"""Metrics, none for what only cohorts need, the requests that have a value of them, and these values."""


class Tally:
    def __init__(self, world: World, usual: tuple[Histogram, Histogram], crowd: Crowd | None) -> None:
        self._world = world
        self._ledger = Ledger(crowd.buckets) if crowd else None
        self._alike = world.fault is None and not (world.cancelled or world.budget)
        self._clusters_reported = world.users is None or world.users.clusters_reported
        self._latency, self._cost = (reference_from(histogram) for histogram in usual)

    def settle(self, minutes: int) -> None:
        if self._ledger:
            self._ledger.settle(minutes)

    def arms(self, requests: Requests, stage: int, weight: int, conditions: Conditions) -> list[Minute]:
        if self._ledger:
            self._ledger.begin(stage, weight)
        minutes = len(conditions.load)
        seen = _Seen(requests, self._world, minutes)
        units = self._units(requests)
        users, by_user, clusters = self._of_users(requests, seen, minutes)
        cells = [
            ArmCounts(**plain, **values, reasons=reasons, left_out=left_out, users=of_users, by_user=of_minute)
            for plain, values, reasons, left_out, of_users, of_minute in zip(
                seen.columns(units), seen.valued(), seen.reasons(), seen.left_out(), users, by_user, strict=True
            )
        ]
        return [(cells[2 * index + 1], cells[2 * index], clusters[index]) for index in range(minutes)]

    def cohort(self, from_weight: int) -> dict[str, UserCounts]:
        """Returns the users whose bucket is from this weight on, each with the mean of all settled requests of the
        stage."""
        ledger = self._ledger
        if not ledger:
            return {}

        def users(name: str, *, target: bool) -> dict[int, int]:
            means = ledger.means_in_stage(name, target=target, from_weight=from_weight, least=LEAST_REQUESTS)
            scores = bins_of(means) if name in _QUANTITIES else np.rint(SHARE_UNIT * means).astype(np.int64)
            return dict(sorted(Counter(scores.tolist()).items()))

        names = {name: name for name in (*_FIELDS.values(), _EASED)}
        if self._alike:
            names["unanswered"] = "errors"
        return {
            arm: UserCounts(**{field: users(name, target=arm == "target") for field, name in names.items()})
            for arm in ("target", "baseline")
        }

    def _units(self, requests: Requests) -> Flags:
        if not self._ledger:
            return np.ones(len(requests.minute), dtype=bool)
        units = np.zeros(len(requests.minute), dtype=bool)
        units[self._ledger.new_users(requests.minute, requests.user)] = True
        return units

    def _of_users(
        self, requests: Requests, seen: _Seen, minutes: int
    ) -> tuple[list[UserCounts], list[dict[Metric, MinuteUsers]], list[Clusters]]:
        by_user: list[dict[Metric, MinuteUsers]] = [{} for _ in range(2 * minutes)]
        if not self._ledger:
            return [_NONE] * (2 * minutes), by_user, [_NO_CLUSTERS] * minutes
        by_metric: dict[Metric, list[dict[int, int]]] = {}
        clusters: list[Clusters] = [({}, {}) for _ in range(minutes)]
        for metrics, chosen, values in self._looks(seen):
            valued = Valued(requests.minute[chosen], requests.user[chosen], requests.target[chosen], values)
            name = _FIELDS[metrics[0]] if metrics else _EASED
            look = self._ledger.look(name, valued, minutes)
            is_mean = name in _QUANTITIES
            if valued.value.any():
                for cell, found in zip(by_user, by_minute(valued, minutes, is_mean=is_mean), strict=True):
                    cell.update(dict.fromkeys(metrics, found))
            for metric in metrics:
                by_metric[metric] = _by_cell(look.complete, minutes, is_mean=is_mean)
                if self._clusters_reported:
                    for index, (baseline, target) in enumerate(zip(look.baseline, look.target, strict=True)):
                        clusters[index][0][metric] = baseline
                        clusters[index][1][metric] = target
        return _users(by_metric), by_user, clusters

    def _looks(self, seen: _Seen) -> list[_Look]:
        # Without a fault of its own, budgets and clients who leave, the unanswered requests are the failed ones.
        failed = (Metric.ERROR_RATE, Metric.UNANSWERED) if self._alike else (Metric.ERROR_RATE,)
        looks: list[_Look] = [(failed, seen.judged, seen.errors[seen.judged].astype(float))]
        if not self._alike:
            looks.append(((Metric.UNANSWERED,), seen.counted, seen.unanswered[seen.counted].astype(float)))
        answered = seen.answered
        looks += [((metric,), answered, flags[answered].astype(float)) for metric, flags in seen.signals.items()]
        if absent := tuple(metric for metric in EXACT if metric not in seen.signals):
            looks.append((absent, answered, np.zeros(int(answered.sum()))))
        if seen.latency is not None and seen.cost is not None and self._latency and self._cost:
            slow, eased = (
                (bins_of(seen.latency) > self._latency.slow_bin + more).astype(float) for more in (0, BINS_PER_MARGIN)
            )
            looks += [((Metric.LATENCY_P95,), answered, slow), ((), answered, eased)]
            looks.append(((Metric.LATENCY_AVERAGE,), answered, np.minimum(seen.latency, self._latency.cap)))
            looks.append(((Metric.COST,), answered, np.minimum(seen.cost, self._cost.cap)))
        return looks


class _Seen:
    """Outcomes in the terms of the counts. `latency` and `cost` are those of the answered requests."""

    def __init__(self, requests: Requests, world: World, minutes: int) -> None:
        self._cells = 2 * requests.minute + requests.target
        self._number = 2 * minutes
        self._hit, self._limited = requests.hit, requests.limited
        out = requests.hit | requests.limited
        self.uncompared = requests.elsewhere & ~out
        self.counted = ~(out | self.uncompared)
        fault = world.fault
        errors = requests.failed | requests.broken if fault and fault.is_error else requests.failed
        unanswered = errors | requests.broken | requests.early | requests.refused
        self.errors, self.unanswered = errors & self.counted, unanswered & self.counted
        self.uncompared_unanswered = unanswered & self.uncompared
        self.judged = self.counted & ~requests.left & (errors | ~(requests.broken | requests.refused))
        self.answered = self.judged & ~errors
        self.stopped = self.counted & requests.left & ~requests.early
        self.signals = requests.signals
        self.latency = None if requests.latency is None else requests.latency[self.answered]
        self.cost = None if requests.cost is None else requests.cost[self.answered]
        self.read = requests.read[self.answered]
        used_up = Fault.BUDGET if world.budget else Fault.TOKENS
        self._by_reason = {Fault.FAILED: requests.failed, Fault.LEFT: requests.early, used_up: requests.refused}
        if fault is not None:
            self._by_reason[fault] = self._by_reason.get(fault, requests.broken) | requests.broken

    def columns(self, units: Flags) -> list[dict[str, Any]]:
        masks = {
            "requests": self.counted,
            "unanswered": self.unanswered,
            "judged": self.judged,
            "errors": self.errors,
            "answered": self.answered,
            "stopped": self.stopped,
            "uncompared": self.uncompared,
            "uncompared_unanswered": self.uncompared_unanswered,
            "units": units,
            **{metric.value: flags & self.answered for metric, flags in self.signals.items()},
        }
        columns = [counts(self._cells[mask], self._number) for mask in masks.values() if mask.any()]
        names = [name for name, mask in masks.items() if mask.any()]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] or [{}] * self._number

    def reasons(self) -> list[dict[str, int]]:
        return self._named({reason.value: mask & self.counted for reason, mask in self._by_reason.items()})

    def left_out(self) -> list[dict[str, int]]:
        return self._named({"cache_hit": self._hit, "requests_per_minute": self._limited})

    def _named(self, masks: Mapping[str, Flags]) -> list[dict[str, int]]:
        found: list[dict[str, int]] = [{} for _ in range(self._number)]
        for name, mask in masks.items():
            for cell, count in Counter(self._cells[mask].tolist()).items():
                found[cell][name] = count
        return found

    def valued(self) -> list[dict[str, Any]]:
        if self.latency is None or self.cost is None:
            return [{}] * self._number
        cells, number = self._cells[self.answered], self._number
        latency, cost, read = bins_of(self.latency), bins_of(self.cost), self.read
        columns = (
            histograms(cells, latency, number),
            sums(cells, self.latency, number),
            histograms(cells, cost, number),
            map(dollars, sums(cells, self.cost, number)),
            histograms(cells[read], latency[read], number),
            histograms(cells[read], cost[read], number),
        )
        names = ("latency", "latency_ms", "cost", "cost_usd", "latency_read", "cost_read")
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _by_cell(complete: Valued, minutes: int, *, is_mean: bool) -> list[dict[int, int]]:
    """Returns by cell the number of users with so many bad ones of five requests, or with a mean of five in this
    bin.
    """
    found: list[dict[int, int]] = [{} for _ in range(2 * minutes)]
    if not len(complete.minute):
        return found
    keys = bins_of(complete.value / 5) if is_mean else np.rint(complete.value).astype(np.int64)
    for cell, key in zip((2 * complete.minute + complete.target).tolist(), keys.tolist(), strict=True):
        found[cell][key] = found[cell].get(key, 0) + 1
    return found


def _users(by_metric: Mapping[Metric, list[dict[int, int]]]) -> list[UserCounts]:
    columns = {_FIELDS[metric]: column for metric, column in by_metric.items()}
    return [
        UserCounts(**dict(zip(columns, row, strict=True))) if any(row) else _NONE
        for row in zip(*columns.values(), strict=True)
    ]
