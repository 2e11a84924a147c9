"""The answers to `GET /models` and `GET /models/{id}`, made once per snapshot of a project."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Literal, TypeVar

import msgspec
from asgiref.sync import sync_to_async

from core.keys.services import KeyRecord
from gateway.errors import ModelNotFoundError
from gateway.model_list.catalog import CallableModel, callable_models, called_model
from gateway.model_list.forms import (
    anthropic_list,
    anthropic_model,
    gemini_list,
    gemini_model,
    openai_list,
    openai_model,
)
from gateway.protocol.model_prefixes import model_prefixes
from gateway.protocol.wire import AUTO
from gateway.snapshot.project import ProjectSnapshot
from integrations.registry import Candidate

T = TypeVar("T")
ModelForm = Literal["openai", "anthropic", "gemini"]
"""The client protocol in whose form models are described."""


async def models_answer(snapshot: ProjectSnapshot, key: KeyRecord, *, form: ModelForm) -> bytes:
    # Keys with the same patterns share an answer.
    form_of_key = f"{form} {key.allowed_models} {key.allowed_providers}" if key.is_restricted else form
    found: bytes | None = snapshot.model_lists.get(form_of_key)
    if found is None:
        models = [model for model in (await _models(snapshot)).values() if _is_permitted(snapshot, key, model)]
        found = snapshot.model_lists[form_of_key] = await _in_thread(_ANSWERS[form], snapshot, models)
    return found


async def model_answer(
    snapshot: ProjectSnapshot, key: KeyRecord, name: str, *, form: ModelForm, called: Candidate | None
) -> bytes:
    """`name` is an id, or a name with the provider before it. Raises ModelNotFoundError (404).

    `called` is the model that a request of this name calls; it answers for a model that no list has.
    """
    models = await _models(snapshot)
    model = models.get(name) or next((found for found in models.values() if found.full_id == name), None)
    if model is None and called is not None:
        model = called_model(snapshot, called)
    if model is None or not _is_permitted(snapshot, key, model):
        raise ModelNotFoundError(f"The project can call no model {name!r}; GET /models lists those that it can")
    if name != model.id:
        model = replace(model, id=name, prefix=f"{model.provider}/")
    return msgspec.json.encode(_MODELS[form](model))


def _is_permitted(snapshot: ProjectSnapshot, key: KeyRecord, model: CallableModel) -> bool:
    """Returns whether the key may call the model at any deployment that serves it.

    `auto` is offered to every key, because requests decide which model it stands for.
    """
    if not key.is_restricted or model.id == AUTO:
        return True
    name = _bare(model)
    places = [one.name for one in snapshot.deployments.values() if one.provider == model.provider and one.serves(name)]
    return any(key.permits(model.provider, name, place) for place in (places or [""]))


def _bare(model: CallableModel) -> str:
    return model.full_id.removeprefix(f"{model.provider}/")


async def _models(snapshot: ProjectSnapshot) -> dict[str, CallableModel]:
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


def _gemini(snapshot: ProjectSnapshot, models: Collection[CallableModel]) -> bytes:
    return msgspec.json.encode(gemini_list(models))


_ANSWERS = {"openai": _openai, "anthropic": _anthropic, "gemini": _gemini}
_MODELS: Mapping[ModelForm, Callable[[CallableModel], object]] = {
    "openai": openai_model,
    "anthropic": anthropic_model,
    "gemini": gemini_model,
}
