from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from core.teams.services import teams_budget
from gateway.judging.form import lacks_schema
from gateway.models import GatewaySettings
from gateway.project_settings.guardrails import NO_GUARDRAILS, GuardrailSettings
from gateway.project_settings.model_groups import ModelGroup
from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.wire import AUTO
from gateway.selectors import model_groups
from gateway.snapshot.loader import load_models, load_prices
from integrations.access.deployments import Deployment
from integrations.registry import resolve
from integrations.selectors import disabled_providers, read_deployments

WARNING_CODES = (
    "guardrails_off",
    "judge_missing",
    "judge_has_no_schema",
    "delimiters_unused",
    "rate_limit_off",
    "rate_limit_missing",
    "budget_missing",
    "alert_channel_missing",
    "teams_above_project",
    "model_not_served",
    "provider_not_enabled",
    "agent_off",
    "retry_off",
    "introspection_off",
)


class SettingsWarning(NamedTuple):
    """A warning about one setting.

    `field` is its path; `code` is stable, while its words may change. `template` has the paths of other settings in
    braces, which a page replaces by their labels.
    """

    field: str
    code: str
    template: str

    @property
    def message(self) -> str:
        return self.template.replace("{", "").replace("}", "")


def settings_warnings(row: GatewaySettings) -> list[SettingsWarning]:
    settings, deployments = row.settings, read_deployments(row.project_id)[0]
    providers = frozenset(deployment.provider for deployment in deployments)
    disabled = disabled_providers(row.project_id)
    return [
        *_of_guardrails(settings),
        *_of_judge(settings, row.project_id),
        *_of_limits(settings),
        *_of_budget(settings),
        *_of_teams(settings, row.project_id),
        *_of_models(settings, model_groups(row.project_id), deployments, disabled),
        *_of_routing(settings, providers | {deployment.name for deployment in deployments}),
    ]


def _of_guardrails(settings: ProjectSettings) -> Iterator[SettingsWarning]:
    guardrails = settings.guardrails
    if not guardrails.is_on:
        for name in GuardrailSettings.__struct_fields__:
            if getattr(guardrails, name) != getattr(NO_GUARDRAILS, name):
                problem = "Does nothing while {guardrails.trust_mode} is off: set it to monitor or enforce."
                yield SettingsWarning(f"guardrails.{name}", "guardrails_off", problem)
    if guardrails.min_quality_score is not None and not settings.judge_model:
        problem = "Every answer passes: there is no {judge_model} to score it."
        yield SettingsWarning("guardrails.min_quality_score", "judge_missing", problem)
    reads_documents = guardrails.prompt_injection_detection or guardrails.spotlighting_enabled
    if guardrails.document_delimiters and not reads_documents:
        problem = (
            "Documents are read like all else without {guardrails.prompt_injection_detection} and"
            " {guardrails.spotlighting_enabled}."
        )
        yield SettingsWarning("guardrails.document_delimiters", "delimiters_unused", problem)


def _of_judge(settings: ProjectSettings, project_id: UUID) -> Iterator[SettingsWarning]:
    if settings.guardrails.min_quality_score is None or not settings.judge_model:
        return
    if lacks_schema(load_models(project_id, load_prices(), settings), settings.judge_model):
        problem = (
            "It takes no JSON schema by the lists of models. If it refuses the request, every answer passes: choose a"
            " model that takes one."
        )
        yield SettingsWarning("judge_model", "judge_has_no_schema", problem)


def _of_limits(settings: ProjectSettings) -> Iterator[SettingsWarning]:
    limits = {"rate_limit_rpm": settings.rate_limit_rpm, "rate_limit_tpm": settings.rate_limit_tpm}
    if not settings.rate_limit_enabled:
        for name, value in limits.items():
            if value is not None:
                yield SettingsWarning(name, "rate_limit_off", "Limits nothing while {rate_limit_enabled} is off.")
    elif not any(limits.values()):
        problem = "Limits nothing: neither {rate_limit_rpm} nor {rate_limit_tpm} is set."
        yield SettingsWarning("rate_limit_enabled", "rate_limit_missing", problem)


def _of_budget(settings: ProjectSettings) -> Iterator[SettingsWarning]:
    if settings.monthly_budget_usd is None:
        for name in ("budget_hard_stop", "budget_alert_enabled"):
            if getattr(settings, name):
                yield SettingsWarning(name, "budget_missing", "Does nothing without {monthly_budget_usd}.")
    elif settings.budget_alert_enabled and not settings.alert_webhook_url and not settings.alert_emails:
        problem = "Alerts are shown in the admin only: neither {alert_webhook_url} nor {alert_emails} is set."
        yield SettingsWarning("budget_alert_enabled", "alert_channel_missing", problem)


def _of_teams(settings: ProjectSettings, project_id: UUID) -> Iterator[SettingsWarning]:
    budget = settings.monthly_budget_usd
    if budget is not None and (of_teams := teams_budget(project_id)) > budget:
        problem = f"The teams' budgets come to {of_teams.normalize():f} a month, more than this."
        yield SettingsWarning("monthly_budget_usd", "teams_above_project", problem)


def _of_models(
    settings: ProjectSettings,
    groups: Mapping[str, ModelGroup],
    deployments: Sequence[Deployment],
    disabled: frozenset[str],
) -> Iterator[SettingsWarning]:
    named = {"judge_model": settings.judge_model, "agent_model": settings.agent_model}
    named |= {f"preferred_models.{place}": model for place, model in enumerate(settings.preferred_models)}
    for field, model in named.items():
        members = groups[model].weights if model in groups else (model,)
        if model and model != AUTO and not any(_is_served(one, deployments, disabled) for one in members):
            yield SettingsWarning(field, "model_not_served", "No enabled provider of this project serves this model.")
    if settings.agent_model and not settings.agent_enabled:
        yield SettingsWarning("agent_model", "agent_off", "Is not asked while {agent_enabled} is off.")


def _is_served(model: str, deployments: Sequence[Deployment], disabled: frozenset[str]) -> bool:
    name = model.partition("/")[0]
    if any(one.name == name != one.provider or model in one.models for one in deployments):
        return True
    return bool(resolve(model, {one.provider for one in deployments}, disabled))


def _of_routing(settings: ProjectSettings, providers: frozenset[str]) -> Iterator[SettingsWarning]:
    for place, provider in enumerate(settings.fallback_order):
        if provider not in providers:
            problem = "This provider is not enabled in this project."
            yield SettingsWarning(f"fallback_order.{place}", "provider_not_enabled", problem)
    if not settings.retry_enabled and settings.retry_max_attempts != ProjectSettings().retry_max_attempts:
        problem = "Everyone is asked once while {retry_enabled} is off."
        yield SettingsWarning("retry_max_attempts", "retry_off", problem)
    if settings.thinking_budget_tokens and not settings.introspection_enabled:
        problem = "No model is asked for its reasoning while {introspection_enabled} is off."
        yield SettingsWarning("thinking_budget_tokens", "introspection_off", problem)
