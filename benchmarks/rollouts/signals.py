from __future__ import annotations

import numpy as np

from benchmarks.rollouts.counting import Flags
from benchmarks.rollouts.worlds import Signals, World
from rollouts.evaluation import Metric
from rollouts.evaluation.policy import EXACT


def signals(world: World, rng: np.random.Generator, harmed: Flags, fallback: Flags) -> dict[Metric, Flags]:
    """Returns by signal which requests would have it in their answer. `harmed` are those to which the world's
    `target_signals` apply, `fallback` those that another model answers."""
    usual, target = world.signals or Signals(), world.target_signals
    found = {}
    for metric in EXACT:
        share = getattr(usual, metric.value)
        shares = np.where(harmed, getattr(target, metric.value), share) if target else share
        if np.any(shares):
            found[metric] = rng.random(len(harmed)) < shares
    if fallback.any():
        found[Metric.FALLBACK] = fallback | found.get(Metric.FALLBACK, fallback)
    return found
