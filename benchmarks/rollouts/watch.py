"""`python -m benchmarks.rollouts.watch` simulates the watch at 100 %: how often it warns of a harmless target, and how
soon of a harmful one. A run is a week of the baseline, an hour at 100 % and a week after it, with a look every hour."""

from __future__ import annotations

import argparse
import math
import os
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from tqdm import tqdm

from benchmarks import report
from benchmarks.binomial import limits
from benchmarks.rollouts.counting import Flags, Floats, Integers, bins_of
from benchmarks.rollouts.weather import Sky, error_rates
from benchmarks.rollouts.worlds import Weather
from rollouts.evaluation import Metric, Policy
from rollouts.evaluation.statistics.reference import Reference, reference_from
from rollouts.watch.comparison import Week, compared, smallest_difference, subject_of
from rollouts.watch.hours import Hour, Sums

_HOUR, _DAY, _WEEK = 60, 24, 168
_SINCE = 1 + _WEEK
_MEDIAN_MS, _SPREAD = 800.0, 1.0
_MEDIAN_COST, _COST_SPREAD = 5_000_000.0, 0.8
_SIMULATED = (
    Metric.UNANSWERED,
    Metric.CONTRACT,
    Metric.LATENCY_P95,
    Metric.LATENCY_AVERAGE,
    Metric.COST,
)
_POLICY = Policy()


@dataclass(frozen=True, slots=True)
class World:
    """At noon the odds of a fault are `day` times, and latencies the square root of that times, those at midnight.
    `before` are the hours of the baseline that are known."""

    rate: float = 10.0
    errors: float = 0.02
    target_errors: float | None = None
    latency_factor: float = 1.0
    cost_factor: float = 1.0
    tail: float = math.inf
    day: float = 1.0
    before: int = _WEEK
    weather: Weather = field(default_factory=Weather)


_STORM = Weather(spells=True, outages=True, bursts=True, autocorrelation=0.98)
HARMLESS: Mapping[str, World] = {
    "nothing happens": World(),
    "nothing happens, 1/min": World(rate=1),
    "nothing happens, 60/min": World(rate=60),
    "six requests an hour": World(rate=0.1),
    "errors 0.2 %": World(errors=0.002),
    "day and night": World(day=4),
    "day and night, 60/min": World(rate=60, day=4),
    "spells": World(weather=Weather(spells=True)),
    "spells, day and night": World(day=4, weather=Weather(spells=True)),
    "spells, day and night, 1/min": World(rate=1, day=4, weather=Weather(spells=True)),
    "spells, day and night, 60/min": World(rate=60, day=4, weather=Weather(spells=True)),
    "outages": World(weather=Weather(outages=True)),
    "autocorrelated": World(weather=Weather(autocorrelation=0.98)),
    "all at once": World(day=4, weather=_STORM),
    "all at once, 60/min": World(rate=60, day=4, weather=_STORM),
    "Pareto latencies": World(tail=1.3),
    "three days of baseline, day and night": World(day=4, before=72),
    "three days, all at once": World(day=4, before=72, weather=_STORM),
    "six hours of baseline": World(before=6),
    "six hours, spells, day and night": World(day=4, before=6, weather=Weather(spells=True)),
}
_HARM: Mapping[str, World] = {
    "answers 98 to 94 %": World(target_errors=0.06),
    "latency +30 %": World(latency_factor=1.3),
    "cost +100 %": World(cost_factor=2.0),
}
_CONDITIONS: Mapping[str, World] = {
    "nothing else": World(),
    "spells, day and night": World(day=4, weather=Weather(spells=True)),
}
HARMFUL: Mapping[str, World] = {
    f"{name}, {where}, {rate:g}/min": replace(harm, rate=rate, day=conditions.day, weather=conditions.weather)
    for name, harm in _HARM.items()
    for where, conditions in _CONDITIONS.items()
    for rate in (1.0, 10.0)
}

WORLDS: Mapping[str, World] = {**HARMLESS, **HARMFUL}
PROMISED = 0.05


@dataclass(frozen=True, slots=True)
class Watch:
    warned: Mapping[str, int]


def simulate(world: World, seed: Sequence[int]) -> Watch:
    rng = np.random.default_rng(list(seed))
    sky = Sky(world.weather, rng)
    # Before and after are one time, and their hours are hours of the day.
    start = int(rng.integers(_WEEK)) * _HOUR
    old = _Traffic(world, sky, rng, start, world.before, is_target=False)
    usual = reference_from(_histogram(old.latency)), reference_from(_histogram(old.cost))
    new = _Traffic(world, sky, rng, start + world.before * _HOUR, _SINCE, is_target=True)
    before, since = list(old.hours(usual)), list(new.hours(usual))
    warned: dict[str, int] = {}
    for metric in _SIMULATED:
        hours = _hours_until_warned(before, since, metric)
        if hours is not None:
            warned[metric.value] = hours
    return Watch(warned)


def _hours_until_warned(before: Sequence[Hour], since: Sequence[Hour], metric: Metric) -> int | None:
    week = Week.of(before, subject_of(metric, _POLICY))
    if week is None:
        return None
    requests, total, usual = 0, 0.0, 0.0
    for hours, one in enumerate(since, start=1):
        sums = one.sums[metric]
        if week.knows(one.hour):
            requests, total = requests + sums.requests, total + sums.total
            usual += sums.requests * week.mean_at(one.hour)
        # A look at a smaller difference takes its time and cannot warn.
        if not requests or total - usual < requests * smallest_difference(metric, usual / requests, _POLICY):
            continue
        look = compared(week, since[:hours])
        if look is not None and look.is_worse:
            return hours
    return None


class _Traffic:
    def __init__(
        self, world: World, sky: Sky, rng: np.random.Generator, first: int, hours: int, *, is_target: bool
    ) -> None:
        minutes = hours * _HOUR
        conditions = sky.minutes(first, minutes)
        self._first, self._hours = first // _HOUR, hours
        of_day = np.sin(2 * math.pi * (first + np.arange(minutes)) / (_DAY * _HOUR)) / 2
        odds = conditions.odds * world.day**of_day
        slow = conditions.slow * math.sqrt(world.day) ** of_day
        rate = world.target_errors if is_target and world.target_errors is not None else world.errors
        count = rng.poisson(world.rate * conditions.load)
        minute = np.repeat(np.arange(minutes), count)
        self._hour = minute // _HOUR
        chance = error_rates(rate, odds, conditions.failing)[minute]
        self._failed = rng.random(len(minute)) < chance
        answered = ~self._failed
        self._answered = self._hour[answered]
        self._broken = rng.random(len(self._answered)) < error_rates(0.01, odds, 0.0)[minute[answered]]
        factor = slow[minute[answered]] * (world.latency_factor if is_target else 1.0)
        self.latency = self._latencies(world, rng, len(self._answered)) * factor
        self.cost = _MEDIAN_COST * np.exp(_COST_SPREAD * rng.standard_normal(len(self._answered)))
        self.cost *= world.cost_factor if is_target else 1.0

    @staticmethod
    def _latencies(world: World, rng: np.random.Generator, number: int) -> Floats:
        if math.isfinite(world.tail):
            pareto: Floats = _MEDIAN_MS * 0.5 ** (1 / world.tail) * (1 + rng.pareto(world.tail, number))
            return pareto
        normal: Floats = _MEDIAN_MS * np.exp(_SPREAD * rng.standard_normal(number))
        return normal

    def hours(self, usual: tuple[Reference | None, Reference | None]) -> Iterator[Hour]:
        latency, cost = usual
        columns = {
            Metric.UNANSWERED: self._sums(self._hour, self._failed),
            Metric.CONTRACT: self._sums(self._answered, self._broken),
        }
        if latency is not None and cost is not None:
            slow = bins_of(self.latency) > latency.slow_bin
            columns[Metric.LATENCY_P95] = self._sums(self._answered, slow)
            columns[Metric.LATENCY_AVERAGE] = self._sums(self._answered, np.minimum(self.latency, latency.cap))
            columns[Metric.COST] = self._sums(self._answered, np.minimum(self.cost, cost.cap))
        for index in range(self._hours):
            yield Hour(self._first + index, {metric: column[index] for metric, column in columns.items()})

    def _sums(self, hour: Integers, given: Floats | Flags) -> list[Sums]:
        values = np.asarray(given, dtype=float)
        number = np.bincount(hour, minlength=self._hours)
        total = np.bincount(hour, weights=values, minlength=self._hours)
        squares = np.bincount(hour, weights=values**2, minlength=self._hours)
        return [Sums(*one) for one in zip(number.tolist(), total.tolist(), squares.tolist(), strict=True)]


def _histogram(values: Floats) -> dict[int, int]:
    bins, counts = np.unique(bins_of(values), return_counts=True)
    return dict(zip(bins.tolist(), counts.tolist(), strict=True))


def _run(name: str, seed: int, number: int) -> Watch:
    return simulate(WORLDS[name], (seed, zlib.crc32(name.encode()), number))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rollouts.watch", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="runs of each harmless world; a quarter of each harmful")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="TEXT", help="only the worlds whose names hold this text")
    options = parser.parse_args(arguments)
    names = [name for name in WORLDS if options.only in name]
    found: dict[str, list[Watch]] = {}
    with ProcessPoolExecutor(options.processes) as pool:
        for name in tqdm(names, desc="simulating", unit="world"):
            runs = options.runs if name in HARMLESS else -(-options.runs // 4)
            found[name] = list(pool.map(partial(_run, name, options.seed), range(runs), chunksize=4))
    print("\n".join([*_harmless(found), "", *_harmful(found)]))
    runs = f"{options.runs} runs of each harmless world and a quarter of that of each harmful one"
    print(f"\n{runs}, seed {options.seed}. {report.machine()}")
    return int(any(limits(_warned(found[name]), options.runs)[0] > PROMISED for name in HARMLESS if name in found))


def _harmless(found: Mapping[str, Sequence[Watch]]) -> Iterator[str]:
    yield "| Harmless target | Warned of within 7 days | 95 % limits |"
    yield "|---|---|---|"
    for name in HARMLESS:
        if name in found:
            low, high = limits(_warned(found[name]), len(found[name]))
            yield f"| {name} | {_warned(found[name]) / len(found[name]):.1%} | {low:.1%} to {high:.1%} |"


def _harmful(found: Mapping[str, Sequence[Watch]]) -> Iterator[str]:
    yield "| Harmful target | Warned of within 7 days | Half of the runs after |"
    yield "|---|---|---|"
    for name in HARMFUL:
        if name in found:
            runs = found[name]
            hours = sorted(min(one.warned.values(), default=_SINCE + 1) for one in runs)
            half = hours[len(hours) // 2]
            when = f"{half} h" if half <= _SINCE else "not within 7 days"
            yield f"| {name} | {_warned(runs) / len(runs):.1%} | {when} |"


def _warned(runs: Sequence[Watch]) -> int:
    return sum(bool(one.warned) for one in runs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
