"""LiteLLM's `config.yaml` (https://docs.litellm.ai/docs/proxy/config_settings)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.keys.services import MIN_SECRET_CHARACTERS
from gateway.configuration.origins.bounds import cache_settings, retry_settings
from gateway.configuration.origins.deployments import Deployments
from gateway.configuration.origins.litellm_models import Variables, read_models
from gateway.configuration.origins.remaining import Imported, Remaining
from gateway.configuration.problems import InvalidConfigurationError, Path, Problem
from gateway.configuration.secrets import Secret

# LiteLLM's units are s, m (minutes), h, d and mo (months). Thirty days from any day are about a month.
_MONTH, _ABOUT_A_MONTH = ("1mo", "monthly"), ("30d", "31d")
_ROUTER, _MODULE, _GENERAL = "router_settings", "litellm_settings", "general_settings"
_SLACK = "SLACK_WEBHOOK_URL"

_STORE = "the stores are settings of the service (docs/operations.md)"
_LOGS = "the log of the service is set by LOG_LEVEL and LOG_FORMAT (docs/operations.md)"
_OWN_CODE = "own code does not run in the gateway; spans of all requests go to collectors (docs/trace-export.md)"
_CIRCUITS = "circuits open by themselves when most of the latest calls fail (docs/routing.md#health)"
_SECONDS = "time-outs are settings of the service (docs/operations.md)"
_PEOPLE = "people have accounts and roles here (docs/access-control.md)"
REASONS: Mapping[str, str] = {
    "model_list.*.litellm_params.mock_*": "made-up answers come from the provider sandbox (docs/operations.md)",
    "model_list.*.litellm_params.*timeout": _SECONDS,
    "model_list.*.litellm_params.*retries": "attempts are a setting of the project, retry_max_attempts",
    "model_list.*.litellm_params.drop_params": "what a provider cannot express is dropped with a warning, or refused",
    "model_list.*.litellm_params.*budget*": "budgets are of projects, teams, keys and end users (docs/limits.md)",
    "model_list.*.model_info.id": "deployments are named after their provider",
    "model_list.*.model_info.mode": "each operation of a model is called at its own path",
    "model_list.*.model_info.base_model": "where the price list lacks the deployment, set its prices",
    "model_list.*.model_info.access_groups*": "what a key may call are its allowed_models",
    "model_list.*.model_info.supports_*": "abilities of models come from the catalogs (docs/models.md)",
    "model_list.*.model_info.max_*": "sizes of models come from the catalogs (docs/models.md)",
    "router_settings.routing_strategy*": "deployments share by weight and priority; provider.sort takes the fastest",
    "router_settings.redis_*": _STORE,
    "router_settings.*allowed_fails*": _CIRCUITS,
    "router_settings.*cooldown*": _CIRCUITS,
    "router_settings.*timeout": _SECONDS,
    "router_settings.*retry_policy*": "the number of attempts is one for all failures, retry_max_attempts",
    "router_settings.retry_*": "waits between attempts are fixed (docs/routing.md)",
    "router_settings.enable_pre_call_checks": "a prompt that is too long goes to the next model by itself",
    "litellm_settings.*timeout": _SECONDS,
    "litellm_settings.drop_params": "what a provider cannot express is dropped with a warning, or refused",
    "litellm_settings.modify_params": "messages are made fit for each provider by themselves",
    "litellm_settings.set_verbose": _LOGS,
    "litellm_settings.json_logs": _LOGS,
    "litellm_settings.*callback*": _OWN_CODE,
    "litellm_settings.turn_off_message_logging": "set log_content of the project to false",
    "litellm_settings.cache_params.*": "the cache is in the service's Redis, by exact requests (docs/cache.md)",
    "litellm_settings.default_key_generate_params*": "each key is made with limits of its own",
    "litellm_settings.upperbound_key_generate_params*": "each key is made with limits of its own",
    "litellm_settings.default_internal_user_params*": _PEOPLE,
    "litellm_settings.default_team_settings*": "teams are in the file's section teams",
    "litellm_settings.max_internal_user_budget": _PEOPLE,
    "general_settings.database_*": _STORE,
    "general_settings.store_*": _STORE,
    "general_settings.use_redis*": _STORE,
    "general_settings.*budget*": "budgets are of projects, teams, keys and end users (docs/limits.md)",
    "general_settings.custom_auth*": "keys are the gateway's own; people sign in by OpenID Connect (docs/sign-in.md)",
    "general_settings.*ui*": _PEOPLE,
    "general_settings.alert*": "alerts watch any figure (docs/alerts.md)",
    "general_settings.*parallel_requests": "requests at once are limits of keys, teams and end users (docs/limits.md)",
    "general_settings.pass_through_endpoints*": "paths of providers are those of docs/surfaces.md",
    "general_settings.background_health_checks": _CIRCUITS,
    "general_settings.health_check*": _CIRCUITS,
    "guardrails.*": "guardrails are settings of the project (docs/guardrails.md)",
    "include.*": "another file: import it too",
    "mcp_servers.*": "the gateway is no proxy of MCP servers",
}


def read(values: Mapping[str, Any], environ: Mapping[str, str]) -> Imported:
    remaining = Remaining(values, REASONS)
    variables = Variables(environ, _texts(remaining, "environment_variables"))
    deployments = Deployments()
    read_models(remaining, variables, deployments)
    _read_aliases(remaining, deployments)
    settings = {
        **_fallbacks(remaining, deployments),
        **_retries(remaining),
        **_cache(remaining),
        **_budget(remaining),
        **_guardrails(remaining),
    }
    project = {
        "settings": settings,
        "integrations": deployments.integrations(),
        "model_groups": deployments.groups(),
        "api_keys": _master_key(remaining, variables),
        "alert_channels": _alerting(remaining, variables),
    }
    for name in variables.unused:
        remaining.note(("environment_variables", name), "variables belong into the environment of the service")
    for name in deployments.shared():
        remaining.note(("model_list",), f"{name} without a provider before it is served by all that have it")
    if project["alert_channels"]:
        settings["budget_alert_enabled"] = True
    return Imported({name: section for name, section in project.items() if section}, remaining.told())


def _texts(remaining: Remaining, name: str) -> dict[str, str]:
    return {key: str(value) for key in remaining.names(name) if (value := remaining.take(name, key)) is not None}


def _read_aliases(remaining: Remaining, deployments: Deployments) -> None:
    for section in (_ROUTER, _MODULE):
        for alias in remaining.names(section, "model_group_alias"):
            given = remaining.take(section, "model_group_alias", alias)
            name = given.get("model") if isinstance(given, dict) else given
            if not isinstance(name, str) or not deployments.add_alias(alias, name):
                remaining.note(
                    (section, "model_group_alias", alias), "stands for no model of model_list, and is left out"
                )
            elif isinstance(given, dict) and given.get("hidden"):
                remaining.note((section, "model_group_alias", alias, "hidden"), "the alias is listed here")


def _fallbacks(remaining: Remaining, deployments: Deployments) -> dict[str, Any]:
    chains: dict[str, list[str]] = {}
    places: dict[str, Path] = {}
    for section in (_ROUTER, _MODULE):
        for kind in ("fallbacks", "context_window_fallbacks", "content_policy_fallbacks"):
            for place, chain in enumerate(remaining.take_list(section, kind)):
                _add_chain(remaining, (section, kind, place), chain, chains)
                places |= {name: (section, kind, place, name) for name in chains if name not in places}
    everywhere = chains.pop("*", [])
    for name, others in chains.items():
        group, left = deployments.group(name, list(dict.fromkeys(others)))
        if group != name:
            text = f"clients have to send {group} as model: {name} itself means that model alone"
            remaining.note(places[name], text)
        for model in left:
            remaining.note(places[name], f"{model} is one model too many for a group")
    for section in (_ROUTER, _MODULE):
        everywhere += [str(name) for name in remaining.take_list(section, "default_fallbacks")]
    if not everywhere:
        return {}
    providers = [provider for name in everywhere for provider in deployments.providers_of(name)]
    return {"preferred_models": list(dict.fromkeys(everywhere)), "fallback_order": list(dict.fromkeys(providers))}


def _add_chain(remaining: Remaining, path: Path, chain: Any, chains: dict[str, list[str]]) -> None:
    if not isinstance(chain, dict):
        remaining.note(path, "is no model with its fallbacks, and is left out")
        return
    for name, others in chain.items():
        for other in others if isinstance(others, list) else [others]:
            if isinstance(other, str):
                chains.setdefault(name, []).append(other)
            else:
                remaining.note((*path, name), "a fallback with parameters of its own is left out")
    if path[1] != "fallbacks":
        remaining.note(path, "joins the other fallbacks: a group is gone through whatever the failure is")


def _retries(remaining: Remaining) -> dict[str, Any]:
    of_module, of_router = remaining.take_number(_MODULE, "num_retries"), remaining.take_number(_ROUTER, "num_retries")
    retries = of_module if of_router is None else of_router
    if retries is None:
        return {}
    if of_module is not None and of_router is not None and of_module != of_router:
        remaining.note((_MODULE, "num_retries"), "yields to that of router_settings")
    return retry_settings(remaining, (_MODULE if of_router is None else _ROUTER, "num_retries"), retries)


def _cache(remaining: Remaining) -> dict[str, Any]:
    is_on, seconds = remaining.take(_MODULE, "cache"), remaining.take_number(_MODULE, "cache_params", "ttl")
    if is_on not in (True, False, None):
        raise InvalidConfigurationError([Problem((_MODULE, "cache"), "Must be true or false.")])
    if not is_on:
        return {}
    if seconds is None:
        remaining.note((_MODULE, "cache"), "no ttl was given: answers are kept for a day")
        seconds = 86_400
    return cache_settings(remaining, (_MODULE, "cache_params", "ttl"), seconds)


def _budget(remaining: Remaining) -> dict[str, Any]:
    budget = remaining.take_number(_MODULE, "max_budget")
    duration = remaining.take_text(_MODULE, "budget_duration")
    if budget is None:
        return {}
    if duration not in (*_MONTH, *_ABOUT_A_MONTH) or budget <= 0:
        remaining.note(
            (_MODULE, "max_budget"), "budgets of a project are by the month and above 0: set monthly_budget_usd"
        )
        return {}
    if duration in _ABOUT_A_MONTH:
        remaining.note((_MODULE, "budget_duration"), f"{duration} becomes the calendar month, in UTC")
    return {"monthly_budget_usd": budget, "budget_hard_stop": True}


_DETECTORS = {
    "presidio": ("pii_block_on_detect", "mask_output_pii"),
    "lakera": ("prompt_injection_detection", ""),
    "lakera_v2": ("prompt_injection_detection", ""),
    "azure/prompt_shield": ("prompt_injection_detection", ""),
    "google_model_armor": ("prompt_injection_detection", ""),
}
_MONITORED = "the gateway's own detector takes its place, in monitor: look at what it finds, then set enforce"


def _guardrails(remaining: Remaining) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for place in range(remaining.size("guardrails")):
        path = ("guardrails", place, "litellm_params")
        kind, modes = remaining.take(*path, "guardrail"), remaining.take(*path, "mode")
        name = remaining.take_text("guardrails", place, "guardrail_name") or str(kind)
        of_requests, of_answers = _DETECTORS.get(str(kind), ("", ""))
        is_of_answers = "post_call" in (modes if isinstance(modes, list) else [modes])
        setting = of_answers if is_of_answers and of_answers else of_requests
        if not setting:
            remaining.note(path[:2], f"the guardrail {name} has no counterpart here (docs/guardrails.md)")
            continue
        found[setting] = True
        remaining.note(path[:2], f"{_MONITORED} (guardrails.{setting})")
    return {"guardrails": {"trust_mode": "monitor", **found}} if found else {}


def _master_key(remaining: Remaining, variables: Variables) -> dict[str, Any]:
    given = remaining.take(_GENERAL, "master_key")
    if given is None:
        return {}
    secret = variables.secret(str(given))
    if isinstance(secret, Secret) and len(secret.value or "") < MIN_SECRET_CHARACTERS:
        remaining.note((_GENERAL, "master_key"), "is too short to be a key here: make another one")
        return {}
    return {"litellm-master-key": {"scopes": ["gateway", "manage"], "secret": secret}}


def _alerting(remaining: Remaining, variables: Variables) -> dict[str, Any]:
    kinds = remaining.take(_GENERAL, "alerting")
    kinds = kinds if isinstance(kinds, list) else [kinds] if kinds else []
    for kind in kinds:
        if kind != "slack":
            remaining.note((_GENERAL, "alerting"), f"{kind}: make an alert channel for it (docs/alerts.md)")
    if "slack" not in kinds:
        return {}
    if _SLACK not in variables.found:
        remaining.note((_GENERAL, "alerting"), f"slack: set {_SLACK}, or make an alert channel (docs/alerts.md)")
        return {}
    url = variables.secret(f"os.environ/{_SLACK}")
    return {"slack": {"kind": "slack", "url": url, "receives_project_alerts": True}}
