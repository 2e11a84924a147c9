from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum


class Fault(StrEnum):
    FAILED = "provider_failed"
    NOT_FOUND = "model_not_found"
    MISSING_VARIABLE = "missing_variable"
    GUARDRAIL = "guardrail"
    LOW_QUALITY = "low_quality"
    LEFT = "client_left"
    HANGING = "still_open"
    BUDGET = "budget"
    TOKENS = "other"

    @property
    def is_error(self) -> bool:
        """Returns whether the service answers for the fault, so that it counts as an error besides a missing answer."""
        return self in (Fault.FAILED, Fault.HANGING)


@dataclass(frozen=True, slots=True)
class Weather:
    """The weather that both arms share.

    With `spells`, for 15 minutes at a time the provider fails in 40 % of requests or is three times slower; with
    `outages` everything fails for 15 minutes; with `bursts` the traffic is eightfold for five minutes.

    `drift` is the factor by which the odds of an error rise in eight hours, `autocorrelation` that of the odds of
    errors and of latencies from one minute to the next. A `steady` weather has neither day nor night. With `fallbacks`
    the model is down for 15 minutes at a time, and another one answers everything.
    """

    steady: bool = False
    fallbacks: bool = False
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
    gets no sums over users. With `heavy` the first user makes a share of the traffic between these bounds and is in the
    target at 10 %; from minute 100 on all its requests fail for 15 minutes, whatever arm it is in.
    """

    number: int
    icc: float = 0.0
    broken: float = 0.0
    activity: float = 1.3
    own: float = 0.0
    clusters_reported: bool = True
    heavy: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sticky allocation of sessions. So many are open at a time; each lasts for `minutes`, and another follows it."""

    open: int
    minutes: int


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of requests that use the response cache, in a Zipf distribution.

    With a popularity that is k times that of another, a question takes k to the power of `slower` times as long, and
    fails k to the power of `failing` times as often. `spread` is the standard deviation of the log latency that is the
    question's own, whatever its popularity.
    """

    number: int = 3000
    slower: float = 0.0
    failing: float = 0.0
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Signals:
    contract: float = 0.0
    truncated: float = 0.0
    fallback: float = 0.0
    empty: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget of so many usual requests that each unit may spend in `minutes`; requests above it are refused.

    A unit is a user or a session or, under random allocation, one of `keys` keys, whose requests are of both arms.
    """

    requests: float
    minutes: int
    keys: int = 0


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A limit of requests a minute for each unit, as in `Budget`. Requests above it are left out."""

    requests: int
    keys: int = 0


@dataclass(frozen=True, slots=True)
class World:
    """The truth of a rollout. `rate` is requests per minute over the day; factors compare the target with the baseline.

    From the stage `harm_from` on the target does harm: its requests fail at `target_errors`, take and cost more by the
    factors, a share `fault_share` of them has the `fault`, its answers have the `target_signals`, and a share `lost` of
    its records never arrives. With `open_requests_reported` the evaluation counts requests that hang before they end.

    On the day before, the provider failed at the rate `usual_errors`, as during the rollout unless it is given.

    With `values` requests have latencies and costs, log-normal or, with a `tail`, Pareto. Answers of both arms have the
    `signals`. Failed requests are sent again up to `retries` times, each time as a new request. With `questions` all
    requests use the response cache; unless they are `compared_alike`, only hits are left out. A share `cancelled` of
    both arms' requests is left by its client, half of them before any output.

    The project may use `token_limit` times its usual tokens in a minute; the tokens of a request are as its cost. In
    the first `start_up` minutes of each stage the target is three times slower. With `prompt_caches` each of
    so many machines of the provider keeps the prompt of an arm for five minutes after each request; one that misses it
    takes 1.8 times as long and costs three times as much.
    """

    rate: float = 60.0
    errors: float = 0.02
    target_errors: float | None = None
    usual_errors: float | None = None
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
    signals: Signals | None = None
    target_signals: Signals | None = None
    questions: Questions | None = None
    compared_alike: bool = True
    cancelled: float = 0.0
    lost: float = 0.0
    users: Users | None = None
    sessions: Sessions | None = None
    budget: Budget | None = None
    rate_limit: RateLimit | None = None
    token_limit: float = 0.0
    start_up: int = 0
    prompt_caches: int = 0

    @property
    def is_sticky(self) -> bool:
        return bool(self.users or self.sessions)

    @property
    def is_plain(self) -> bool:
        plain = World(
            rate=self.rate,
            errors=self.errors,
            target_errors=self.target_errors,
            usual_errors=self.usual_errors,
            harm_from=self.harm_from,
            weather=self.weather,
            lost=self.lost,
        )
        return self == plain and not self.weather.fallbacks
