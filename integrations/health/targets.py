from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Target(NamedTuple):
    """A model at one project's integration. Integration 0 is the implicit sandbox."""

    integration_id: int
    provider: str
    model: str


class CircuitState(StrEnum):
    CLOSED = "closed"  # The circuit lets requests pass.
    OPEN = "open"  # The target gets no requests.
    HALF_OPEN = "half_open"  # The target got no requests for a while, and one request may try it now.


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """The figures of a target over the last five minutes. Latencies are None without a sample. `samples` counts the
    latencies; `error_share` is the share of failures among all `outcomes`, 0 to 1. A failure has no latency unless it
    was a time-out, so `samples` can be 0 if every call failed."""

    circuit: CircuitState
    samples: int
    error_share: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    degraded: bool
    outcomes: int = 0


UNKNOWN = TargetHealth(CircuitState.CLOSED, 0, 0.0, None, None, None, degraded=False)
