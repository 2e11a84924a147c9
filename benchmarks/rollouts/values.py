from __future__ import annotations

import math

import numpy as np

from benchmarks.rollouts.counting import Floats, Integers, bins_of, histograms
from benchmarks.rollouts.crowd import Crowd
from benchmarks.rollouts.worlds import World
from rollouts.evaluation.statistics.grid import Histogram

_MEDIAN_MS, _LATENCY_SPREAD = 800.0, 1.0
_MEDIAN_COST, _COST_SPREAD = (
    5_000_000.0,
    0.8,
)  # The unit is 10^-10 US dollars, so this is half a thousandth of a dollar.
MEAN_COST = _MEDIAN_COST * math.exp(_COST_SPREAD**2 / 2)
REFERENCE_VALUES = 5000


class Values:
    """Latencies in ms and costs in 10^-10 US dollars: log-normal, a part of the deviation the user's own, or Pareto."""

    def __init__(self, world: World, crowd: Crowd | None, rng: np.random.Generator) -> None:
        self._world = world
        self._crowd = crowd
        self._rng = rng

    def latency(self, user: Integers, factor: Floats) -> Floats:
        if math.isfinite(self._world.tail):
            minimum = _MEDIAN_MS * 0.5 ** (1 / self._world.tail)
            slow: Floats = minimum * (1 + self._rng.pareto(self._world.tail, len(user))) * factor
            return slow
        own = self._crowd.slower if self._crowd else None
        latency: Floats = _MEDIAN_MS * np.exp(_LATENCY_SPREAD * self._deviations(user, own)) * factor
        return latency

    def cost(self, user: Integers, factor: Floats) -> Floats:
        own = self._crowd.dearer if self._crowd else None
        cost: Floats = _MEDIAN_COST * np.exp(_COST_SPREAD * self._deviations(user, own)) * factor
        return cost

    def reference(self, slow: Floats) -> tuple[Histogram, Histogram]:
        """Returns the latencies and costs of the day before; none in a world without values. `slow` is how much slower
        than usual each of `REFERENCE_VALUES` requests was."""
        if not self._world.values:
            return {}, {}
        ones = np.ones(REFERENCE_VALUES)
        user = self._crowd.drawn(self._rng, REFERENCE_VALUES) if self._crowd else np.zeros(REFERENCE_VALUES, np.int64)
        [latency], [cost] = (
            histograms(np.zeros(REFERENCE_VALUES, dtype=np.int64), bins_of(values), 1)
            for values in (self.latency(user, slow), self.cost(user, ones))
        )
        return latency, cost

    def _deviations(self, user: Integers, own: Floats | None) -> Floats:
        drawn: Floats = self._rng.standard_normal(len(user))
        if own is None or self._world.users is None or not self._world.users.own:
            return drawn
        share = self._world.users.own
        mixed: Floats = share * own[user] + math.sqrt(1 - share**2) * drawn
        return mixed
