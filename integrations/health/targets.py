"""The targets whose health is watched, and the facts that are known of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Target(NamedTuple):
    """One upstream: a model at one project's integration. Integration 0 is the implicit sandbox."""

    integration_id: int
    provider: str
    model: str


class CircuitState(StrEnum):
    CLOSED = "closed"  # requests pass
    OPEN = "open"  # the target rests
    HALF_OPEN = "half_open"  # rested: one request may try


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """The last five minutes of a target. Latencies are None while there is no sample.

    `samples` counts the latencies, `error_share` is failures among all outcomes, 0 to 1.
    """

    circuit: CircuitState
    samples: int
    error_share: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    degraded: bool


UNKNOWN = TargetHealth(CircuitState.CLOSED, 0, 0.0, None, None, None, degraded=False)
