"""The settings of a project about its gateway, as the pipeline reads them: immutable, grouped by pipeline stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from core.caller_limits import CallerLimits
from gateway.project_settings.guardrails import NO_GUARDRAILS, GuardrailSettings

DEFAULT_RETENTION_DAYS = 400


@dataclass(frozen=True, slots=True)
class RoutingSettings:
    """The settings by which a project's requests find their provider (docs/routing.md).

    `retry_max_attempts` counts the calls to one provider for one request, the first included.
    """

    retry_enabled: bool = True
    retry_max_attempts: int = 2
    fallback_enabled: bool = True
    fallback_order: tuple[str, ...] = ()
    preferred_models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """The limits and budgets of a project (docs/limits.md); a limit that is None does not exist.

    `hard_stop` and `alerts` concern the month's budget; a session's budget always refuses. `set_at_us` is the time of
    the last change in microseconds: spend before it may not have been counted. `is_set` is True if any limit exists.
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
    """The settings of the request log: `content` keeps the texts of requests, `retention_days` bounds all rows."""

    content: bool = True
    retention_days: int = DEFAULT_RETENTION_DAYS


@dataclass(frozen=True, slots=True)
class ReasoningSettings:
    """The settings of reasoning: `introspection` requests it from models, `budget_tokens` bounds it unless it is 0."""

    introspection: bool = False
    budget_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """All settings of a project. With `cache_ttl_seconds` 0 only requests that ask for it are cached; an empty
    `judge_model` means that the project has no judge. `prompt_cache_markers` adds the markers that a provider's prompt
    cache needs."""

    routing: RoutingSettings = RoutingSettings()
    limits: LimitSettings = LimitSettings()
    logging: LogSettings = LogSettings()
    reasoning: ReasoningSettings = ReasoningSettings()
    # The limits of every end user without limits by name; None where there are none.
    end_users: CallerLimits | None = None
    guardrails: GuardrailSettings = NO_GUARDRAILS
    cache_ttl_seconds: int = 0
    judge_model: str = ""
    prompt_cache_markers: bool = False
