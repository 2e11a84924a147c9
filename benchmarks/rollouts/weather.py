"""Day and night, drift, spells, outages and bursts: the conditions minute by minute, for both arms alike."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from benchmarks.rollouts.worlds import Weather

Floats = NDArray[np.float64]

_DAY = 1440
_SPELL_MINUTES, _MINUTES_BETWEEN = 15, 120
_BURST_MINUTES, _BURST_FACTOR = 5, 8.0
_FAILING_RATE, _SLOW_FACTOR = 0.4, 3.0
_DRIFT_MINUTES = 480
_LATENCY_SWAY = 0.5


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions of consecutive minutes: factor of the traffic, factor of the odds of an error, lowest error rate,
    factor of latencies, and whether another model answers."""

    load: Floats
    odds: Floats
    failing: Floats
    slow: Floats
    fallback: NDArray[np.bool_]

    def after(self, minutes: int) -> Conditions:
        return Conditions(*(getattr(self, field.name)[minutes:] for field in fields(self)))


class Sky:
    def __init__(self, weather: Weather, rng: np.random.Generator) -> None:
        self._weather = weather
        self._rng = rng
        self._phase = rng.random() * _DAY
        self._until = {"failing": 0, "slow": 0, "outage": 0, "burst": 0, "fallback": 0}
        self._sway = rng.standard_normal(2)

    def minutes(self, first: int, count: int) -> Conditions:
        weather, numbers = self._weather, np.arange(first, first + count)
        sway = 0.0 if weather.steady else 0.5
        load = 1 + sway * np.sin(2 * math.pi * (numbers + self._phase) / _DAY)
        odds, failing, slow = np.ones(count), np.zeros(count), np.ones(count)
        if weather.drift != 1:
            odds *= weather.drift ** (numbers / _DRIFT_MINUTES - 0.5).clip(-0.5, 0.5)
        if weather.autocorrelation:
            of_odds, of_latency = self._swayed(count)
            odds *= np.exp(of_odds)
            slow *= np.exp(_LATENCY_SWAY * of_latency)
        if weather.spells:
            failing[self._spell("failing", first, count)] = _FAILING_RATE
            slow[self._spell("slow", first, count)] *= _SLOW_FACTOR
        if weather.outages:
            failing[self._spell("outage", first, count)] = 1.0
        if weather.bursts:
            load[self._spell("burst", first, count, lasting=_BURST_MINUTES)] *= _BURST_FACTOR
        fallback = self._spell("fallback", first, count) if weather.fallbacks else np.zeros(count, dtype=bool)
        return Conditions(load, odds, failing, slow, fallback)

    def _spell(self, kind: str, first: int, count: int, lasting: int = _SPELL_MINUTES) -> NDArray[np.bool_]:
        begins = self._rng.random(count) < 1 / _MINUTES_BETWEEN
        inside = np.zeros(count, dtype=bool)
        for index in range(count):
            if begins[index] and first + index >= self._until[kind]:
                self._until[kind] = first + index + lasting
            inside[index] = first + index < self._until[kind]
        return inside

    def _swayed(self, count: int) -> Floats:
        keep = self._weather.autocorrelation
        noise = self._rng.standard_normal((count, 2)) * math.sqrt(1 - keep**2)
        series = np.empty((2, count))
        for index in range(count):
            self._sway = keep * self._sway + noise[index]
            series[:, index] = self._sway
        return series


def error_rates(base: float | Floats, odds: Floats | float, failing: Floats | float) -> Floats:
    base, odds = np.asarray(base, dtype=float), np.asarray(odds, dtype=float)
    with np.errstate(invalid="ignore"):
        shifted = np.where(np.isinf(odds), 1.0, base * odds / (1 - base + base * odds))
    rates: Floats = np.maximum(np.where(base >= 1, 1.0, shifted), failing)
    return rates


def odds_ratio(rate: float, other: float) -> float:
    """Returns the factor that turns the odds of `other` into those of `rate`; infinite where `other` is 1."""
    if other >= 1:
        return math.inf
    return 1.0 if rate == other else other * (1 - rate) / (rate * (1 - other))
