"""The usual tests on the same traffic: our own implementations of the published forms, on pooled counts.

Minute by minute, each test compares the rates of bad requests of target and baseline. No other product was run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from benchmarks.rollouts.counting import Flags, Floats
from rollouts.states import DEFAULT_STAGES

MIN_REQUESTS = 20
"""The number of the target's requests before anything is tested, as for the verdict."""

Z_TEST = "z-test each minute"

_Z_ONE_SIDED = 1.6448536
_TAU = 0.02
_TIGHTEST_AT = 5000.0
_THRESHOLD, _MINUTES_ABOVE = 0.05, 5
_GROUP_MISSES = 0.025


@dataclass(frozen=True, slots=True)
class Pooled:
    """The state after each minute: requests of both arms and the bad ones among them, summed up since the start; and
    the stage."""

    stage: Floats
    target: Floats
    target_bad: Floats
    baseline: Floats
    baseline_bad: Floats

    @classmethod
    def of(cls, minutes: Sequence[tuple[int, int, int, int, int]]) -> Pooled:
        columns = np.array(minutes, dtype=float).reshape(-1, 5).T
        return cls(columns[0], *np.cumsum(columns[1:], axis=1))

    @property
    def tested(self) -> Flags:
        known: Flags = (self.target >= MIN_REQUESTS) & (self.baseline > 0)
        return known

    def difference(self) -> Floats:
        shares: Floats = _ratio(self.target_bad, self.target) - _ratio(self.baseline_bad, self.baseline)
        return shares

    def variance(self) -> Floats:
        rate = _ratio(self.target_bad + self.baseline_bad, self.target + self.baseline)
        return rate * (1 - rate) * (_ratio(1.0, self.target) + _ratio(1.0, self.baseline))

    def variance_of_arms(self) -> Floats:
        target, baseline = _ratio(self.target_bad, self.target), _ratio(self.baseline_bad, self.baseline)
        return _ratio(target * (1 - target), self.target) + _ratio(baseline * (1 - baseline), self.baseline)

    def z(self) -> Floats:
        variance = self.variance()
        return np.where(variance > 0, self.difference() / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)


def z_test(pooled: Pooled) -> Flags:
    """Returns the alarms of a one-sided z-test at 5 % that is repeated every minute."""
    return pooled.tested & (pooled.z() > _Z_ONE_SIDED)


def group_sequential(pooled: Pooled) -> Flags:
    """Returns the alarms of O'Brien and Fleming's bounds, one-sided at 2.5 %, tested at the ends of the stages with a
    control."""
    bound, looks = group_bound(planned_information()), np.zeros(len(pooled.stage), dtype=bool)
    information = planned_information()
    for index, share in enumerate(information):
        [of_stage] = np.nonzero(pooled.stage == index + 1)
        if len(of_stage):
            last = of_stage[-1]
            looks[last] = bool(pooled.tested[last] and pooled.z()[last] * math.sqrt(share) >= bound)
    return looks


def mixture_test(pooled: Pooled) -> Flags:
    """Returns the alarms of the mixture sequential probability ratio test of Johari and others (2017): a normal
    prior of standard deviation 0.02 around no difference, always valid at 5 %."""
    variance, difference = pooled.variance(), pooled.difference()
    safe = np.where(variance > 0, variance, 1.0)
    log_ratio = 0.5 * np.log(safe / (safe + _TAU**2)) + _TAU**2 * difference**2 / (2 * safe * (safe + _TAU**2))
    return pooled.tested & (variance > 0) & (difference > 0) & (log_ratio >= -math.log(0.05))


def confidence_sequence(pooled: Pooled) -> Flags:
    """Returns the alarms of the one-sided asymptotic sequence of Waudby-Smith and others (arXiv 2103.06476) at 5 %,
    tightest at 5,000."""
    number, variance = pooled.target + pooled.baseline, pooled.variance_of_arms()
    half = sequence_half_width(variance * number, np.maximum(number, 1.0), 0.05)
    return pooled.tested & (variance > 0) & (pooled.difference() > half)


def sequence_half_width(variance: Floats, number: Floats, misses: float) -> Floats:
    """Returns the half width of the sequence for the mean of `number` observations of this variance."""
    level = -2 * math.log(2 * misses)
    scale = number * (level + math.log(1 + level)) / _TIGHTEST_AT
    half: Floats = np.sqrt(variance / number * 2 * (scale + 1) / scale * np.log(1 + np.sqrt(scale + 1) / (2 * misses)))
    return half


def threshold(pooled: Pooled) -> Flags:
    """Returns the alarms of a threshold rule: more than 5 % of the target's requests of a minute are bad, in five
    minutes in all. Argo Rollouts and Flagger count like this and test no hypothesis."""
    bad, requests = np.diff(pooled.target_bad, prepend=0.0), np.diff(pooled.target, prepend=0.0)
    above: Flags = np.cumsum((requests > 0) & (bad > _THRESHOLD * requests)) >= _MINUTES_ABOVE
    return above


PEERS: Mapping[str, Callable[[Pooled], Flags]] = {
    Z_TEST: z_test,
    "group-sequential": group_sequential,
    "mSPRT": mixture_test,
    "confidence sequence": confidence_sequence,
    "threshold": threshold,
}


def first_alarms(pooled: Pooled) -> dict[str, tuple[int, int]]:
    alarms = {}
    for name, test in PEERS.items():
        raised = test(pooled)
        if raised.any():
            index = int(np.argmax(raised))
            alarms[name] = (index + 1, int(pooled.target[index]))
    return alarms


@lru_cache(maxsize=1)
def planned_information() -> tuple[float, ...]:
    target = baseline = 0.0
    gathered = []
    for stage in DEFAULT_STAGES:
        if stage.weight < 100:
            target += stage.min_duration_minutes * stage.weight
            baseline += stage.min_duration_minutes * (100 - stage.weight)
            gathered.append(target * baseline / (target + baseline))
    return tuple(one / gathered[-1] for one in gathered)


@lru_cache(maxsize=8)
def group_bound(information: tuple[float, ...]) -> float:
    """Returns the value that a Brownian motion exceeds at any of these times with a probability of 2.5 %: z at a look
    is compared with it divided by the root of the information."""
    low, high = 1.0, 4.0
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if _crossing(information, middle) > _GROUP_MISSES else (low, middle)
    return (low + high) / 2


def _crossing(information: tuple[float, ...], bound: float) -> float:
    """Returns the probability by recursive integration over the values below the bound (Armitage, McPherson and Rowe
    1969)."""
    grid = np.linspace(-6.0, bound, 1201)
    step = grid[1] - grid[0]
    weights = np.full(len(grid), step)
    weights[[0, -1]] = step / 2
    before, density = 0.0, np.zeros(0)
    for time in information:
        noise = time - before
        if len(density):
            kernel = np.exp(-((grid[:, None] - grid[None, :]) ** 2) / (2 * noise)) / math.sqrt(2 * math.pi * noise)
            density = kernel @ (density * weights)
        else:
            density = np.exp(-(grid**2) / (2 * noise)) / math.sqrt(2 * math.pi * noise)
        before = time
    return 1 - float(density @ weights)


def _ratio(above: Floats | float, below: Floats) -> Floats:
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0)
