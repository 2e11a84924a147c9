from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from agent.tools.base import NoArguments, Toolbox, ToolContext
from agent.tools.pages import PageArguments, listed_each, listed_rows
from core import selectors
from core.errors import NotFoundError
from core.keys.services import project_keys
from gateway.model_groups.serializers import ModelGroupSerializer
from gateway.model_groups.services import MODEL_GROUPS
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


TOOLS = Toolbox(SCOPE)


@TOOLS.tool("Project")
def get_project(context: ToolContext, arguments: NoArguments) -> dict[str, Any]:
    """The project this conversation is about: name, when it was made, enabled providers, number of API keys, budgets
    and limits that are set (null: not set), preferred models and what the agent may read."""
    project = selectors.get_project(context.project_id)
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


@TOOLS.tool("Gateway settings")
def get_gateway_settings(context: ToolContext, arguments: NoArguments) -> dict[str, Any]:
    """All settings of the project's gateway: retries, fallback, limits, budgets, guardrails, cache, logging and the
    agent. Addresses are shortened to their host."""
    found = settings_body(current_settings(context.project_id))
    mailed = [f"…@{address.rpartition('@')[2]}" for address in found["alert_emails"]]
    return {**found, "alert_webhook_url": _place(found["alert_webhook_url"]), "alert_emails": mailed}


@TOOLS.tool("Provider integrations")
def list_integrations(context: ToolContext, arguments: PageArguments) -> dict[str, Any]:
    """The deployments at providers that the project has set up, several of one provider under different names:
    priority, weight, the vendor's limits, models, prices, whether each is enabled and usable, region and other options,
    parameters and headers it adds, and what its last test found. Never a credential or a header's value."""
    return listed_each(project_integrations(context.project_id), _integration, arguments)


@TOOLS.tool("Model groups")
def list_model_groups(context: ToolContext, arguments: PageArguments) -> dict[str, Any]:
    """The project's own names that stand for several models: the models of each with their weights, and whether they
    are tried in order or drawn by weight. Requests send such a name as model."""
    return listed_rows(MODEL_GROUPS.rows(context.project_id), ModelGroupSerializer, arguments)


def _integration(row: ProviderIntegration) -> dict[str, Any]:
    shown = IntegrationSerializer(row).data
    return {**{name: shown[name] for name in _INTEGRATION if name in shown}, "base_url": _place(row.base_url)}


def _place(url: str) -> str:
    """Returns scheme and host: the other parts of an address often hold a credential."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname or ''}/…"
    except ValueError:
        return "…"
