"""The settings of a project about its gateway, as the pipeline reads them: immutable, grouped by pipeline stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from gateway.project_settings.guardrails import NO_GUARDRAILS, GuardrailSettings

DEFAULT_RETENTION_DAYS = 400


@dataclass(frozen=True, slots=True)
class RoutingSettings:
    """How a project's requests find their provider (design, section 5, Routing and Settings).

    `retry_max_attempts` counts the calls to one provider for one request, the first included.
    """

    retry_enabled: bool = True
    retry_max_attempts: int = 2
    fallback_enabled: bool = True
    fallback_order: tuple[str, ...] = ()
    preferred_models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """What a project may use (design, section 5, Limits and budgets). None means without a limit.

    `hard_stop` and `alerts` speak of the month's budget; a session's budget always refuses. `set_at_us`: when, in
    microseconds; what was spent before may not have been counted. `is_set`: there is something to count.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    monthly_budget_usd: Decimal | None = None
    hard_stop: bool = False
    alerts: bool = False
    session_budget_usd: Decimal | None = None
    set_at_us: int = field(default=0, compare=False)
    is_set: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        limits = (self.requests_per_minute, self.tokens_per_minute, self.monthly_budget_usd, self.session_budget_usd)
        object.__setattr__(self, "is_set", any(limit is not None for limit in limits))


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Whether the texts of requests are kept, and for how many days anything about them is."""

    content: bool = True
    retention_days: int = DEFAULT_RETENTION_DAYS


@dataclass(frozen=True, slots=True)
class ReasoningSettings:
    """Whether models that can reason are asked for their reasoning, and for how many tokens of it (0: their own)."""

    introspection: bool = False
    budget_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """`cache_ttl_seconds` 0 means that only requests that ask for it are cached; `judge_model` empty: no judge."""

    routing: RoutingSettings = RoutingSettings()
    limits: LimitSettings = LimitSettings()
    logging: LogSettings = LogSettings()
    reasoning: ReasoningSettings = ReasoningSettings()
    guardrails: GuardrailSettings = NO_GUARDRAILS
    cache_ttl_seconds: int = 0
    judge_model: str = ""
