"""Sums over allocation units, which show the evaluation how similar the requests of one user are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UnitSums:
    """The sums over the units u of the baseline, with n_u requests of a unit and x_u the sum of their values: Σn_u,
    Σn_u², Σx_u, Σx_u², Σx_u n_u, and the sum of the squared values of single requests."""

    metric: str
    requests: float
    requests_squared: float
    total: float
    total_squared: float
    cross: float
    values_squared: float


@dataclass(frozen=True)
class UnitLimits:
    """The limits above which the values of `unit_sums` are cut, in ms and 10^-10 US dollars, and the bin above which a
    request is slow."""

    latency_cap_ms: float
    slow_bin: int
    cost_cap: float
