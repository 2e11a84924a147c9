"""Sums over allocation units, from which the evaluation learns how much requests of one user resemble each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UnitSums:
    """Over the units u of the baseline, n_u the requests of one and x_u the sum of their values: Σn_u, Σn_u², Σx_u,
    Σx_u², Σx_u n_u, and the sum of the squared values of single requests."""

    metric: str
    requests: float
    requests_squared: float
    total: float
    total_squared: float
    cross: float
    values_squared: float


@dataclass(frozen=True)
class UnitLimits:
    """Where the values of `unit_sums` are cut, in ms and 10^-10 US dollars, and above which bin a request is slow."""

    latency_cap_ms: float
    slow_bin: int
    cost_cap: float
