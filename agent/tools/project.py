"""Tools of the scope project:read: the project, its gateway settings and its providers. No secrets."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from agent.tools.base import NoArguments, Tool, ToolContext
from agent.tools.pages import PageArguments, listed, page_of
from core.errors import NotFoundError
from core.keys.services import project_keys
from core.selectors import get_project
from core.wire.pagination import Listing
from gateway.model_groups.serializers import ModelGroupSerializer
from gateway.model_groups.services import list_groups
from gateway.selectors import current_settings
from gateway.serializers import settings_body
from integrations.models import ProviderIntegration
from integrations.selectors import enabled_credentials, project_integrations
from integrations.serializers import OPTIONS, IntegrationSerializer

SCOPE = "project:read"

_BUDGETS = (
    "monthly_budget_usd",
    "session_budget_usd",
    "budget_hard_stop",
    "rate_limit_enabled",
    "rate_limit_rpm",
    "rate_limit_tpm",
)
# The fields of an integration that contain no part of a credential.
_INTEGRATION = (
    "name", "provider", "weight", "priority", "rpm", "tpm", "models", "prices", "enabled", "own_account", "usable",
    "last_test", "created_at", "updated_at", "default_parameters", "forced_parameters", "extra_headers",
    "forward_headers", *OPTIONS,
)  # fmt: skip


def _get_project(context: ToolContext, arguments: NoArguments) -> dict[str, Any]:
    project = get_project(context.project_id)
    if project is None:
        raise NotFoundError("There is no such project.", code="project_not_found")
    settings = settings_body(current_settings(context.project_id))
    keys = project_keys(context.project_id)
    return {
        "id": project.pk,
        "name": project.name,
        "created_at": project.created_at,
        "enabled_providers": sorted({item.provider for item in enabled_credentials(context.project_id)}),
        "api_key_count": len(keys),
        "expired_api_key_count": sum(key.expired(context.now) for key in keys),
        "budgets": {name: settings[name] for name in _BUDGETS},
        "preferred_models": settings["preferred_models"],
        "agent_scopes": settings["agent_scopes"],
    }


def _get_settings(context: ToolContext, arguments: NoArguments) -> dict[str, Any]:
    found = settings_body(current_settings(context.project_id))
    mailed = [f"…@{address.rpartition('@')[2]}" for address in found["alert_emails"]]
    return {**found, "alert_webhook_url": _place(found["alert_webhook_url"]), "alert_emails": mailed}


def _list_integrations(context: ToolContext, arguments: PageArguments) -> dict[str, Any]:
    rows, page = project_integrations(context.project_id), page_of(arguments)
    shown = [_integration(row) for row in rows[page.offset : page.offset + page.limit]]
    return listed(Listing(rows.count(), shown), page)


def _list_model_groups(context: ToolContext, arguments: PageArguments) -> dict[str, Any]:
    rows, page = list_groups(context.project_id), page_of(arguments)
    shown = [ModelGroupSerializer(row).data for row in rows[page.offset : page.offset + page.limit]]
    return listed(Listing(rows.count(), shown), page)


def _integration(row: ProviderIntegration) -> dict[str, Any]:
    shown = IntegrationSerializer(row).data
    return {**{name: shown[name] for name in _INTEGRATION if name in shown}, "base_url": _place(row.base_url)}


def _place(url: str) -> str:
    """Returns scheme and host of an address: its other parts often hold a credential."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname or ''}/…"
    except ValueError:
        return "…"


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="get_project",
        scope=SCOPE,
        title="Project",
        description=(
            "The project this conversation is about: name, when it was made, enabled providers, number of API keys,"
            " budgets and limits that are set (null: not set), preferred models and what the agent may read."
        ),
        arguments=NoArguments,
        run=_get_project,
    ),
    Tool(
        name="get_gateway_settings",
        scope=SCOPE,
        title="Gateway settings",
        description=(
            "All settings of the project's gateway: retries, fallback, limits, budgets, guardrails, cache, logging and"
            " the agent. Addresses are shortened to their host."
        ),
        arguments=NoArguments,
        run=_get_settings,
    ),
    Tool(
        name="list_integrations",
        scope=SCOPE,
        title="Provider integrations",
        description=(
            "The deployments at providers that the project has set up, several of one provider under different names:"
            " priority, weight, the vendor's limits, models, prices, whether each is enabled and usable, region and"
            " other options, parameters and headers it adds, and what its last test found. Never a credential or a"
            " header's value."
        ),
        arguments=PageArguments,
        run=_list_integrations,
    ),
    Tool(
        name="list_model_groups",
        scope=SCOPE,
        title="Model groups",
        description=(
            "The project's own names that stand for several models: the models of each with their weights, and whether"
            " they are tried in order or drawn by weight. Requests send such a name as model."
        ),
        arguments=PageArguments,
        run=_list_model_groups,
    ),
)
