"""Chooses the model that the snippets name: one that answers in this project."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from core.keys.patterns import permits
from core.models import ApiKey
from gateway.protocol.wire import AUTO
from gateway.selectors import model_groups, project_settings
from integrations.model_lists.selectors import listed_models
from integrations.registry import default_model, providers, resolve
from integrations.sandbox.behaviours import BEHAVIOURS
from integrations.selectors import SANDBOX, enabled_credentials

# The name that stands in the snippets while no provider can answer.
UNANSWERED = "openai/gpt-4o-mini"


def usual_model(project_id: UUID, key: ApiKey | None = None) -> str:
    """Returns the first callable one of the project's preferred models, else a model of an enabled provider, else the
    sandbox's; an empty text if there is none. Models that `key` may not call are skipped."""
    enabled = enabled_providers(project_id)
    allowed = _allowed(key)
    for name in project_settings(project_id).preferred_models:
        if any(allowed(found.provider, found.upstream_model) for found in resolve(name, enabled)[:1]):
            return name
    # The list of all providers begins with those that most people know.
    for provider in (name for name in providers() if name in enabled and name != SANDBOX):
        for model in _models_of(project_id, provider):
            if allowed(provider, model):
                return f"{provider}/{model}"
    return f"{SANDBOX}/echo" if SANDBOX in enabled and allowed(SANDBOX, "echo") else ""


def problem_with(project_id: UUID, model: str) -> str:
    """Returns why the project cannot call the model, as a sentence; empty if it can."""
    if model == AUTO:
        is_there = bool(project_settings(project_id).preferred_models)
        return "" if is_there else f"{AUTO} needs preferred models, and the project has none."
    enabled = enabled_providers(project_id)
    if model.startswith(f"{SANDBOX}/") and SANDBOX in enabled:
        is_there = model.removeprefix(f"{SANDBOX}/") in BEHAVIOURS
        return "" if is_there else f"The sandbox has no model {model}."
    if model in model_groups(project_id) or resolve(model, enabled):
        return ""
    return f"No enabled provider serves a model of the name {model}."


def enabled_providers(project_id: UUID) -> set[str]:
    return {credentials.provider for credentials in enabled_credentials(project_id)}


def _models_of(project_id: UUID, provider: str) -> list[str]:
    listed = [model.id for model in listed_models(project_id).get(provider, ()) if model.converses]
    usual = default_model(provider)
    return [usual, *listed] if usual and (not listed or usual in listed) else listed


def _allowed(key: ApiKey | None) -> Callable[[str, str], bool]:
    if key is None:
        return lambda provider, model: True
    models, providers = tuple(key.allowed_models), tuple(key.allowed_providers)
    return lambda provider, model: permits(models, providers, provider, model)
