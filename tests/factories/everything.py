from __future__ import annotations

from typing import Any

from agent.services import create_conversation
from analytics.models import Deletion, Evaluator, Feedback, OnlineEvaluation, ReviewQueue, TraceDestination
from core.models import Host, Membership, Project, Team
from core.roles import Role
from gateway.models import GatewaySettings
from gateway.services import replace_settings
from gateway.tables.alert import AlertSecret, BudgetAlert, OperatorAlert
from gateway.tables.figure_alert import AlertChannel, AlertEvent, FigureAlert
from integrations.models import ModelPrice, PricePeriod, PriceSyncLog, ProviderIntegration
from integrations.services import IntegrationChange, add_integration
from prompts.models import PromptActivation, PromptConfig, PromptVersion
from rollouts.models import Rollout
from tests.factories.core import make_key, make_staff
from tests.factories.dashboards import make_dashboard
from tests.factories.datasets import make_dataset
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_online_evaluation, make_tasks
from tests.factories.prompts import make_config
from tests.factories.reviews import make_queue
from tests.factories.rollouts import make_rollout
from tests.factories.scores import make_score

_NOVEMBER = "2026-11-01T00:00:00Z"


def one_of_everything(project: Project) -> dict[str, Any]:
    return {
        **_of_core(project),
        **_of_integrations(project),
        **_of_analytics(project),
        **_of_prompts(project),
        **_of_gateway(project),
        "agent_conversation": create_conversation(project_id=project.pk, title="a", actor="test"),
    }


def _of_core(project: Project) -> dict[str, Any]:
    Team.objects.get_or_create(project=project, name="Search", defaults={"monthly_budget_usd": "1"})
    user = make_staff(name=f"account of {project.pk}")
    host, _ = Host.objects.get_or_create(
        name=f"host-{project.pk}",
        defaults={"instance": "a", "version": "1", "started_at": _NOVEMBER, "seen_at": _NOVEMBER},
    )
    return {
        "core_project": project,
        "core_apikey": make_key(project)[0],
        "core_membership": Membership.objects.create(project=project, user=user, role=Role.READER),
        "core_host": host,
        "auth_user": user,
    }


def _of_integrations(project: Project) -> dict[str, Any]:
    add_integration(
        project_id=project.pk,
        provider="openai",
        change=IntegrationChange(secret="sk-1234567890", base_url="", options={}, secret_extra=None),
    )
    ProviderIntegration.objects.filter(project=project).update(base_url="http://127.0.0.1:9/v1")
    model: dict[str, Any] = {"project": project, "provider": "openai", "model": "m", "source": "manual"}
    return {
        "integrations_providerintegration": ProviderIntegration.objects.get(project=project, provider="openai"),
        "integrations_modelprice": ModelPrice.objects.create(**model),
        "integrations_priceperiod": PricePeriod.objects.create(**model, valid_from=_NOVEMBER),
        "integrations_pricesynclog": PriceSyncLog.objects.create(
            status="success", trigger="admin", started_at=_NOVEMBER
        ),
    }


def _of_analytics(project: Project) -> dict[str, Any]:
    return {
        "analytics_deletion": Deletion.objects.create(project=project, kind="request", subject_hash="a" * 64),
        "analytics_score": make_score(project),
        "analytics_feedback": Feedback.objects.create(project=project, session_id="s", score=3),
        "analytics_tracedestination": TraceDestination.objects.create(
            project=project, name="Collector", endpoint="https://collector.example.com/v1/traces"
        ),
        "analytics_reviewqueue": ReviewQueue.objects.filter(project=project).first() or make_queue(project),
        "analytics_dataset": make_dataset(project),
        "analytics_dashboard": make_dashboard(project),
        **_of_evaluators(project),
    }


def _of_evaluators(project: Project) -> dict[str, Any]:
    evaluator = Evaluator.objects.filter(project=project).first() or make_evaluator(project)
    evaluation = OnlineEvaluation.objects.filter(project=project).first() or make_tasks(
        make_online_evaluation(evaluator), due=1, done=2, failed=1, skipped=1
    )
    return {
        "analytics_evaluator": evaluator,
        "analytics_evaluatorversion": evaluator.versions.first(),
        "analytics_onlineevaluation": evaluation,
    }


def _of_prompts(project: Project) -> dict[str, Any]:
    config = PromptConfig.objects.filter(project=project).first() or make_config(project, versions=3)
    rollout = Rollout.objects.filter(project=project).first() or make_rollout(config)
    # Nobody may delete an active version.
    Rollout.objects.filter(pk=rollout.pk).update(status="rolled_back")
    PromptConfig.objects.filter(pk=config.pk).update(has_active_rollout=False)
    return {
        "prompts_promptconfig": config,
        "prompts_promptversion": PromptVersion.objects.filter(config=config).first(),
        "prompts_promptactivation": PromptActivation.objects.filter(config=config).first(),
        "rollouts_rollout": rollout,
    }


def _of_gateway(project: Project) -> dict[str, Any]:
    replace_settings(project_id=project.pk, values={"retry_max_attempts": 4}, actor="test")
    _add_alert(project)
    secret, _ = AlertSecret.objects.get_or_create(project=project, defaults={"token": "a token found nowhere else"})
    operators, _ = OperatorAlert.objects.get_or_create(
        kind="disk_low", host=str(project.pk), defaults={"text": "It is.", "raised_at": _NOVEMBER}
    )
    return {
        "gateway_budgetalert": BudgetAlert.objects.create(
            project=project, month="2026-11", threshold_percent=50, spent_usd="1", budget_usd="2"
        ),
        "gateway_alertsecret": secret,
        "gateway_operatoralert": operators,
        "gateway_gatewaysettings": GatewaySettings.objects.get(project=project),
        "gateway_settingschange": project.settings_changes.latest("pk"),
    }


def _add_alert(project: Project) -> None:
    channel, _ = AlertChannel.objects.get_or_create(
        project=project, name="On call", defaults={"kind": "email", "emails": ["ann@example.com"]}
    )
    alert, is_new = FigureAlert.objects.get_or_create(
        project=project,
        name="Failures",
        defaults={
            "query": {"figure": "error_rate", "filters": {"model": "gpt-4o-mini"}},
            "condition": "above",
            "threshold": 0.05,
            "window_minutes": 15,
            "state": "firing",
            "value": 0.12,
            "checked_at": _NOVEMBER,
            # A worker of the test's service leaves it as it is.
            "next_check_at": "2100-01-01T00:00:00Z",
        },
    )
    alert.channels.add(channel)
    if is_new:
        message = {"message": "Share of requests that failed: 12 %. The alert fires above 5 % over 15 minutes."}
        AlertEvent.objects.create(
            project=project, alert=alert, kind="fired", subject="Firing: Failures", content=message
        )
