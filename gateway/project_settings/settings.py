"""A project's gateway settings as they are stored, shown by the API and read by the pipeline.

Each is declared here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal, get_args

import msgspec
from django.conf import settings as django_settings
from msgspec import Meta

from core.caller_limits import MAX_CONCURRENT_REQUESTS, MAX_PER_MINUTE
from core.errors import ValidationError
from gateway.project_settings.declaration import Email, Name, Names, Url, declared, setting
from gateway.project_settings.guardrails import NO_GUARDRAILS, GuardrailSettings
from gateway.project_settings.sections import (
    AGENT,
    ALERTS,
    BUDGETS,
    CACHES,
    END_USERS,
    GUARDRAILS,
    GUARDRAILS_OF_ANSWERS,
    MODELS,
    RATES,
    REASONING,
    REQUEST_LOG,
    ROLLOUTS,
)
from integrations.transport.addresses import check_webhook_url

AgentScope = Literal["project:read", "llm:read", "observability:read", "billing:read"]
AGENT_SCOPES: tuple[AgentScope, ...] = get_args(AgentScope)

_PerMinute = Annotated[int, Meta(ge=1, le=MAX_PER_MINUTE)]
_Concurrent = Annotated[int, Meta(ge=1, le=MAX_CONCURRENT_REQUESTS)]
_ThinkingTokens = Annotated[int, Meta(ge=0, le=1_000_000)]
_Attempts = Annotated[int, Meta(ge=1, le=10)]
_CacheSeconds = Annotated[int, Meta(ge=0, le=30 * 86_400)]
_RetentionDays = Annotated[int, Meta(ge=1, le=3650)]
_Scopes = Annotated[tuple[AgentScope, ...], Meta(max_length=len(AGENT_SCOPES))]
_Emails = Annotated[tuple[Email, ...], Meta(max_length=50)]


def _scopes_problem(scopes: Sequence[str]) -> str:
    return "A scope stands there twice." if len(set(scopes)) != len(scopes) else ""


def _thresholds_problem(lines: Sequence[str]) -> str:
    # The pipeline reads settings, and has no use for the statistics of rollouts.
    from rollouts.evaluation.thresholds import threshold_from

    try:
        metrics = [threshold_from(line)[0] for line in lines]
    except ValueError as error:
        return str(error)
    return "A metric stands there twice." if len(set(metrics)) != len(metrics) else ""


def _webhook_problem(url: str) -> str:
    try:
        if url:
            check_webhook_url(url, allow_private=django_settings.ALLOW_PRIVATE_UPSTREAMS)
    except ValidationError as error:
        return f"The value {error.message.removeprefix('url: ')}."
    return ""


class WithoutRedis(StrEnum):
    SHARE = "share"  # Each worker admits its share of each limit.
    REFUSE = "refuse"  # No request is admitted that a limit could refuse.


_WITHOUT_REDIS = {
    WithoutRedis.SHARE: "share: every worker admits its part of each limit",
    WithoutRedis.REFUSE: "refuse: answer 503 where a limit applies",
}


class ProjectSettings(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All settings of a project, in the order of the API.

    Stored values have these bounds too: a bound may become wider, and only a migration of the stored values may make
    one narrower. A missing stored value is the default, and an unknown name is ignored, so that workers of two versions
    read the same row.
    """

    introspection_enabled: Annotated[
        bool,
        setting(
            REASONING,
            "Ask models for their reasoning",
            "Asks models for their reasoning where a request says nothing about it.",
        ),
    ] = False
    thinking_budget_tokens: Annotated[
        _ThinkingTokens,
        setting(
            REASONING,
            "Reasoning tokens to ask for",
            "Tokens of reasoning to ask for; 0 leaves it to the model.",
            hint="0 leaves it to the model.",
        ),
    ] = 0
    openai_responses_for_tools: Annotated[
        bool,
        setting(
            REASONING,
            "Send tools with reasoning by OpenAI's Responses API",
            "Sends chat completions with tools to models that reason by the Responses API, which takes both.",
            hint="Also at Azure and xAI. Requests of other protocols and fallbacks go that way in any case.",
        ),
    ] = False
    fallback_enabled: Annotated[
        bool,
        setting(
            MODELS,
            "Let another provider answer when the first cannot",
            "Whether another provider may answer when the first cannot.",
        ),
    ] = True
    fallback_order: Annotated[
        Names, setting(MODELS, "Order of providers to fall back to", "Providers in the order to fall back to.")
    ] = ()
    preferred_models: Annotated[
        Names,
        setting(
            MODELS,
            "Preferred models, best first",
            "What model `auto` stands for, best first.",
            hint="What the model name auto stands for.",
        ),
    ] = ()
    retry_enabled: Annotated[
        bool,
        setting(
            MODELS,
            "Ask a provider again after a passing failure",
            "Whether a provider is asked again after a failure that may pass.",
        ),
    ] = True
    retry_max_attempts: Annotated[
        _Attempts,
        setting(
            MODELS,
            "Attempts at one provider",
            "How often one provider may be asked for one request, the first time included.",
            hint="The first one included.",
        ),
    ] = 2
    rate_limit_enabled: Annotated[
        bool, setting(RATES, "Limit requests and tokens per minute", "Whether the two limits per minute hold.")
    ] = False
    rate_limit_rpm: Annotated[
        _PerMinute | None, setting(RATES, "Requests per minute", "Requests per minute; null for any number.")
    ] = None
    rate_limit_tpm: Annotated[
        _PerMinute | None, setting(RATES, "Tokens per minute", "Tokens per minute; null for any number.")
    ] = None
    limits_without_redis: Annotated[
        WithoutRedis,
        setting(
            RATES,
            "While Redis is away",
            "Whether workers share the limits while Redis is away, or refuse requests to which a limit applies.",
            hint="Holds for the limits of teams, keys and end users and for budgets too.",
            choices=_WITHOUT_REDIS,
        ),
    ] = WithoutRedis.SHARE
    monthly_budget_usd: Annotated[
        Decimal | None,
        setting(
            BUDGETS, "Budget per month, US dollars", "Per calendar month, UTC.", hint="Of a calendar month in UTC."
        ),
    ] = None
    budget_alert_enabled: Annotated[
        bool,
        setting(
            ALERTS, "Alert at 50, 80 and 100 % of the budget", "Tells at 50, 80 and 100 percent of the month's budget."
        ),
    ] = False
    budget_hard_stop: Annotated[
        bool,
        setting(
            BUDGETS,
            "Refuse requests once the budget is used up",
            "Refuses requests once the month's budget is used up.",
        ),
    ] = False
    session_budget_usd: Annotated[
        Decimal | None,
        setting(BUDGETS, "Budget per session, US dollars", "Per x-svc-session-id.", hint="For each x-svc-session-id."),
    ] = None
    end_user_monthly_budget_usd: Annotated[
        Decimal | None,
        setting(
            END_USERS,
            "Budget per month of every end user, US dollars",
            "Of every end user, per calendar month, UTC.",
            hint="Of x-svc-user-id or the body's user.",
        ),
    ] = None
    end_user_rpm: Annotated[
        _PerMinute | None,
        setting(
            END_USERS,
            "Requests per minute of every end user",
            "Requests per minute of every end user; null for any number.",
        ),
    ] = None
    end_user_tpm: Annotated[
        _PerMinute | None,
        setting(
            END_USERS,
            "Tokens per minute of every end user",
            "Tokens per minute of every end user; null for any number.",
        ),
    ] = None
    end_user_max_concurrent: Annotated[
        _Concurrent | None,
        setting(
            END_USERS,
            "Requests of every end user at the same time",
            "Requests of every end user at the same time; null for any number.",
        ),
    ] = None
    guardrails: Annotated[
        GuardrailSettings, setting(GUARDRAILS, "Guardrails", "What requests and answers may hold.")
    ] = NO_GUARDRAILS
    cache_ttl_seconds: Annotated[
        _CacheSeconds,
        setting(
            CACHES,
            "Seconds for which an answer is given again",
            "For how long an answer is given again to the same request; 0: only where one asks for it.",
            hint="0: only where a request says so.",
        ),
    ] = 0
    prompt_cache_markers: Annotated[
        bool,
        setting(
            CACHES,
            "Mark prompts for the vendor's cache",
            "Adds the markers that a provider's prompt cache needs.",
            hint="For Claude and Nova, which keep only what is marked. A client's own markers count alone.",
        ),
    ] = False
    log_content: Annotated[
        bool,
        setting(
            REQUEST_LOG, "Keep the texts of requests and answers", "Whether the texts of requests and answers are kept."
        ),
    ] = True
    retention_days: Annotated[
        _RetentionDays,
        setting(
            REQUEST_LOG,
            "Days for which a request is kept",
            "How long anything about a request is kept, from its arrival on.",
            hint="From its arrival on.",
        ),
    ] = 400
    rollout_thresholds: Annotated[
        Names,
        setting(
            ROLLOUTS,
            "Thresholds of metrics",
            "Of a metric the difference from which on it may fail, and the one below which it passes, as"
            " `unanswered 0.001 0.002`: points of rates, factors of latencies and cost; `-` for what is usual.",
            hint="A metric, what it may fail from, what it passes below: unanswered 0.001 0.002",
            problem=_thresholds_problem,
        ),
    ] = ()
    judge_model: Annotated[
        Name,
        setting(
            GUARDRAILS_OF_ANSWERS,
            "Model that judges answers",
            "The model that scores answers; empty for none.",
            hint="Empty for none.",
        ),
    ] = ""
    agent_enabled: Annotated[bool, setting(AGENT, "Offer the in-app agent", "Whether the in-app agent answers.")] = True
    agent_scopes: Annotated[
        _Scopes,
        setting(
            AGENT,
            "What the agent may read",
            "What the in-app agent may read.",
            choices={scope: scope.replace(":", ", ") for scope in AGENT_SCOPES},
            problem=_scopes_problem,
        ),
    ] = AGENT_SCOPES
    agent_model: Annotated[
        Name,
        setting(
            AGENT,
            "Model behind the agent",
            "The model behind the in-app agent; empty: the first preferred one.",
            hint="Empty for the first preferred one.",
        ),
    ] = ""
    alert_webhook_url: Annotated[
        Url,
        setting(
            ALERTS,
            "Address that alerts are posted to",
            "Where alerts are posted to: a public address with https.",
            problem=_webhook_problem,
        ),
    ] = ""
    alert_emails: Annotated[
        _Emails, setting(ALERTS, "Addresses that alerts are mailed to", "Who is written to about alerts.")
    ] = ()

    @cached_property
    def shaping(self) -> tuple[object, ...]:
        return tuple(getattr(self, one.name) for one in declared(ProjectSettings) if one.section.shapes_answers)
