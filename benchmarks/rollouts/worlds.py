"""The worlds in which rollouts are simulated: the truth about the traffic, the provider and the target."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum


class Fault(StrEnum):
    """A fault by which a target breaks requests, named like the reason under which an evaluation counts them."""

    FAILED = "provider_failed"
    NOT_FOUND = "model_not_found"
    MISSING_VARIABLE = "missing_variable"
    GUARDRAIL = "guardrail"
    LOW_QUALITY = "low_quality"
    LEFT = "client_left"
    HANGING = "still_open"

    @property
    def is_error(self) -> bool:
        """Returns whether the service answers for the fault, so that it counts as an error besides a missing answer."""
        return self in (Fault.FAILED, Fault.HANGING)


@dataclass(frozen=True, slots=True)
class Weather:
    """The weather that both arms share.

    With `spells`, for 15 minutes at a time the provider fails in 40 % of requests or is three times slower; with
    `outages` everything fails for 15 minutes; with `bursts` the traffic is eightfold for five minutes. `drift` is the
    factor by which the odds of an error rise in eight hours, `autocorrelation` that of the odds of errors and of
    latencies from one minute to the next.
    """

    spells: bool = False
    outages: bool = False
    bursts: bool = False
    drift: float = 1.0
    autocorrelation: float = 0.0


@dataclass(frozen=True, slots=True)
class Users:
    """Sticky allocation of `number` users, whose activity is a Pareto variable of tail `activity`, or equal (infinite).

    Their error rates have the intraclass correlation `icc`; a share of `broken` always fails. `own` is the part of the
    standard deviation of log latency and log cost that is the user's own. Without `clusters_reported` the evaluation
    gets no sums over users.
    """

    number: int
    icc: float = 0.0
    broken: float = 0.0
    activity: float = 1.3
    own: float = 0.0
    clusters_reported: bool = True


@dataclass(frozen=True, slots=True)
class World:
    """The truth of a rollout. `rate` is requests per minute over the day; factors compare the target with the baseline.

    From the stage `harm_from` on the target does harm: its requests fail at `target_errors`, take and cost more by the
    factors, a share `fault_share` of them has the `fault`, and a share `lost` of its records never arrives. With
    `open_requests_reported` the evaluation counts requests that hang before they end. With `values` requests have
    latencies and costs, log-normal or, with a `tail`, Pareto. Failed requests are sent again up to `retries` times,
    each time as a new request. With `questions` above 0 all requests use the response cache. A share `cancelled` of
    both arms' requests is left by its client, half of them before any output.
    """

    rate: float = 60.0
    errors: float = 0.02
    target_errors: float | None = None
    harm_from: int = 1
    fault: Fault | None = None
    fault_share: float = 0.0
    open_requests_reported: bool = True
    values: bool = False
    latency_factor: float = 1.0
    cost_factor: float = 1.0
    tail: float = math.inf
    weather: Weather = field(default_factory=Weather)
    retries: int = 0
    questions: int = 0
    cancelled: float = 0.0
    lost: float = 0.0
    users: Users | None = None

    @property
    def is_plain(self) -> bool:
        """Returns whether requests are independent and only succeed or fail, so that counting them is enough."""
        special = (self.values, self.users, self.fault, self.retries, self.questions, self.cancelled)
        return not any(special)
