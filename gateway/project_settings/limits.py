from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from core.caller_limits import CallerLimits
from gateway.project_settings.settings import ProjectSettings, WithoutRedis


@dataclass(frozen=True, slots=True)
class ProjectLimits:
    """The limits and budgets of a project (docs/limits.md); a limit that is None does not exist.

    `hard_stop` concerns the month's budget; a session's budget always refuses. `set_at_us` is the time of the last
    change in microseconds: spend before it may not have been counted. `refuses_without_redis` concerns the limits of
    teams, keys and end users too. `is_set` is True if any limit exists.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    monthly_budget_usd: Decimal | None = None
    hard_stop: bool = False
    session_budget_usd: Decimal | None = None
    refuses_without_redis: bool = False
    set_at_us: int = field(default=0, compare=False)
    is_set: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        limits = (self.requests_per_minute, self.tokens_per_minute, self.monthly_budget_usd, self.session_budget_usd)
        object.__setattr__(self, "is_set", any(limit is not None for limit in limits))


NO_LIMITS = ProjectLimits()


def limits_of(settings: ProjectSettings, set_at_us: int = 0) -> ProjectLimits:
    return ProjectLimits(
        requests_per_minute=settings.rate_limit_rpm if settings.rate_limit_enabled else None,
        tokens_per_minute=settings.rate_limit_tpm if settings.rate_limit_enabled else None,
        monthly_budget_usd=settings.monthly_budget_usd,
        hard_stop=settings.budget_hard_stop,
        session_budget_usd=settings.session_budget_usd,
        refuses_without_redis=settings.limits_without_redis == WithoutRedis.REFUSE,
        set_at_us=set_at_us,
    )


def limits_of_every_user(settings: ProjectSettings, set_at_us: int = 0) -> CallerLimits | None:
    limits = CallerLimits(
        requests_per_minute=settings.end_user_rpm,
        tokens_per_minute=settings.end_user_tpm,
        concurrent_requests=settings.end_user_max_concurrent,
        monthly_budget_usd=settings.end_user_monthly_budget_usd,
        set_at_us=set_at_us,
    )
    return limits if limits.is_set else None
