from __future__ import annotations

from integrations.health.histogram import quantiles
from integrations.health.targets import CircuitState, TargetHealth
from integrations.health.window import FAILURES, OUTCOMES, Counts

DEGRADED_ERROR_SHARE = 0.1
DEGRADED_OUTCOMES = 10

_SHARES = (0.5, 0.95, 0.99)


def summarize(counts: Counts, circuit: CircuitState) -> TargetHealth:
    """A target is degraded with at least 10 % failures among at least 10 outcomes, whatever its latency."""
    outcomes, failures = counts.get(OUTCOMES, 0), counts.get(FAILURES, 0)
    buckets = {field: count for field, count in counts.items() if field >= 0}
    p50, p95, p99 = quantiles(buckets, _SHARES) if buckets else (None, None, None)
    share = failures / outcomes if outcomes else 0.0
    return TargetHealth(
        circuit=circuit,
        samples=sum(buckets.values()),
        error_share=share,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        degraded=outcomes >= DEGRADED_OUTCOMES and share >= DEGRADED_ERROR_SHARE,
        outcomes=outcomes,
    )
