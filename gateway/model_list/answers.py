"""The answers to `GET /models` and `GET /models/{id}`, made once for each snapshot of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from asgiref.sync import sync_to_async

from gateway.errors import ModelNotFoundError
from gateway.model_list.catalog import CallableModel, callable_models
from gateway.model_list.forms import anthropic_list, anthropic_model, openai_list, openai_model
from gateway.protocol.model_prefixes import model_prefixes
from gateway.snapshot.project import ProjectSnapshot


async def models_answer(snapshot: ProjectSnapshot, *, anthropic: bool) -> Mapping[str, Any]:
    """Returns the list of the models that the project can call, in OpenAI's form or Anthropic's."""
    models = (await _models(snapshot)).values()
    if anthropic:
        return anthropic_list(models)
    return openai_list(models, model_prefixes(snapshot.credentials))


async def model_answer(snapshot: ProjectSnapshot, name: str, *, anthropic: bool) -> Mapping[str, Any]:
    """Returns one model, by its id or by its name with the provider before it. Raises ModelNotFoundError (404)."""
    models = await _models(snapshot)
    model = models.get(name) or next((found for found in models.values() if found.full_id == name), None)
    if model is None:
        raise ModelNotFoundError(f"The project can call no model {name!r}; GET /models lists those that it can")
    if name != model.id:
        model = replace(model, id=name, prefix=f"{model.provider}/")
    return anthropic_model(model) if anthropic else openai_model(model)


async def _models(snapshot: ProjectSnapshot) -> dict[str, CallableModel]:
    """Returns the models by id. They are found in a thread: thousands of them take longer than the event loop may be
    held."""
    if not snapshot.callable_models:
        snapshot.callable_models.update(await sync_to_async(callable_models, thread_sensitive=False)(snapshot))
    return snapshot.callable_models
