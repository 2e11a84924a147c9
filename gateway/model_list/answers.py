"""The answers to `GET /models` and `GET /models/{id}`, made once for each snapshot of a project."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeVar

import msgspec
from asgiref.sync import sync_to_async

from gateway.errors import ModelNotFoundError
from gateway.model_list.catalog import CallableModel, callable_models
from gateway.model_list.forms import anthropic_list, anthropic_model, openai_list, openai_model
from gateway.protocol.model_prefixes import model_prefixes
from gateway.snapshot.project import ProjectSnapshot

T = TypeVar("T")


async def models_answer(snapshot: ProjectSnapshot, *, anthropic: bool) -> bytes:
    """Returns the JSON of the models that the project can call, in OpenAI's form or Anthropic's."""
    form = "anthropic" if anthropic else "openai"
    found: bytes | None = snapshot.model_lists.get(form)
    if found is None:
        models = (await _models(snapshot)).values()
        found = snapshot.model_lists[form] = await _in_thread(_ANSWERS[form], snapshot, models)
    return found


async def model_answer(snapshot: ProjectSnapshot, name: str, *, anthropic: bool) -> bytes:
    """Returns the JSON of one model, by its id or by its name with the provider before it. Raises ModelNotFoundError
    (404)."""
    models = await _models(snapshot)
    model = models.get(name) or next((found for found in models.values() if found.full_id == name), None)
    if model is None:
        raise ModelNotFoundError(f"The project can call no model {name!r}; GET /models lists those that it can")
    if name != model.id:
        model = replace(model, id=name, prefix=f"{model.provider}/")
    return msgspec.json.encode(anthropic_model(model) if anthropic else openai_model(model))


async def _models(snapshot: ProjectSnapshot) -> dict[str, CallableModel]:
    """Returns the models by id."""
    if not snapshot.callable_models:
        snapshot.callable_models.update(await _in_thread(callable_models, snapshot))
    return snapshot.callable_models


async def _in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Thousands of models take longer than the event loop may be held."""
    return await sync_to_async(function, thread_sensitive=False)(*arguments)


def _openai(snapshot: ProjectSnapshot, models: Collection[CallableModel]) -> bytes:
    return msgspec.json.encode(openai_list(models, model_prefixes(snapshot.credentials)))


def _anthropic(snapshot: ProjectSnapshot, models: Collection[CallableModel]) -> bytes:
    return msgspec.json.encode(anthropic_list(models))


_ANSWERS = {"openai": _openai, "anthropic": _anthropic}
