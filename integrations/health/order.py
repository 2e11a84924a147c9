"""The order in which targets are tried, by their health. Pure: the caller brings the health and a random number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log2

from integrations.health.targets import CircuitState, Target, TargetHealth

# A median of fewer samples is too uncertain, and the target counts as cold.
ENOUGH_SAMPLES = 5
# On a tenth of the requests a cold target goes first although a warm one exists, so that it gets its samples.
PROBE_SHARE = 0.1
# A smaller difference of latencies does not justify a change of provider.
NEGLIGIBLE_MS = 100.0

HealthOf = Callable[[Target], TargetHealth]


def order_by_latency(targets: Sequence[Target], health: HealthOf, draw: float) -> list[Target]:
    """Orders targets for `sort: latency`: warm targets by median, then cold ones, then the degraded, then those with an
    open circuit.

    On PROBE_SHARE of the requests one of the cold targets goes first, each equally often. `draw` is in [0, 1). A
    half-open circuit counts as cold. Ties keep the given order.
    """
    known = [(target, health(target)) for target in targets]
    ordered = [target for target, _ in sorted(known, key=lambda pair: _by_latency(pair[1]))]
    cold = [target for target, found in known if _latency_class(found) == _COLD]
    if not cold or draw >= PROBE_SHARE:
        return ordered
    # The product may be rounded up to the number of cold targets when the draw is just below the share, hence the
    # minimum.
    probed = cold[min(floor(draw / PROBE_SHARE * len(cold)), len(cold) - 1)]
    return [probed, *(target for target in ordered if target != probed)]


def order_by_health(targets: Sequence[Target], health: HealthOf) -> list[Target]:
    """Orders targets for clients that ask for no order: by coarse bands of latency, then the degraded, then open
    circuits.

    A band is a doubling of the best median among `targets`, so that small differences never move traffic. A target
    without enough samples is in the best band. A half-open circuit stays in its place, where it gets its probe. Ties
    keep the given order.
    """
    known = [(target, health(target)) for target in targets]
    medians = [max(found.p50_ms, NEGLIGIBLE_MS) for _, found in known if _is_warm(found) and found.p50_ms is not None]
    best = min(medians, default=NEGLIGIBLE_MS)
    return [target for target, _ in sorted(known, key=lambda pair: _by_health(pair[1], best))]


_WARM, _COLD, _DEGRADED, _BROKEN = range(4)


def _latency_class(found: TargetHealth) -> int:
    if found.circuit is CircuitState.OPEN:
        return _BROKEN
    if found.circuit is CircuitState.HALF_OPEN:
        return _COLD
    if found.degraded:
        return _DEGRADED
    return _WARM if _is_warm(found) else _COLD


def _by_latency(found: TargetHealth) -> tuple[int, float]:
    place = _latency_class(found)
    return place, (found.p50_ms or 0.0) if place in (_WARM, _DEGRADED) else 0.0


def _by_health(found: TargetHealth, best: float) -> tuple[bool, bool, int]:
    closed = found.circuit is CircuitState.CLOSED
    return found.circuit is CircuitState.OPEN, closed and found.degraded, _band(found, best)


def _band(found: TargetHealth, best: float) -> int:
    if not _is_warm(found) or found.p50_ms is None:
        return 0
    return floor(log2(max(found.p50_ms, NEGLIGIBLE_MS) / best))


def _is_warm(found: TargetHealth) -> bool:
    return found.samples >= ENOUGH_SAMPLES
