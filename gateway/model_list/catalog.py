"""Finds the models that a project can call now, in its snapshot alone: no provider is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gateway.protocol.wire import AUTO
from gateway.snapshot.project import ProjectSnapshot
from integrations.capabilities.lookup import Capabilities, capabilities_of
from integrations.model_lists.catalog import catalog_names
from integrations.model_lists.listed import ListedModel
from integrations.model_lists.operations import RESPONSES_ONLY, TEXT, operations_of
from integrations.pricing.cost import Price
from integrations.providers.base import Credentials
from integrations.providers.native import native_adapter
from integrations.registry import Candidate, prefix_of, resolve, traits_of

_UNKNOWN = Capabilities()


@dataclass(frozen=True, slots=True)
class CallableModel:
    """A model that the project can call by `id`.

    `full_id` has the provider before the name and can always be called. `prefix` is the supported prefix that `id`
    begins with. `created` is in seconds since 1970, 0 if unknown. Counts of tokens are None if neither the provider nor
    a catalog has them.
    """

    id: str
    full_id: str
    provider: str
    owned_by: str
    prefix: str
    name: str
    created: int
    context_window: int | None
    max_output_tokens: int | None
    abilities: Capabilities
    operations: tuple[str, ...]
    price: Price | None


def callable_models(snapshot: ProjectSnapshot) -> dict[str, CallableModel]:
    """Returns the models by id, alphabetically after `auto` and the model groups.

    These two are listed only if they stand for a model.
    """
    enabled = snapshot.credentials
    priced: dict[str, list[str]] = {provider: [] for provider in enabled}
    for provider, name in snapshot.prices:
        if provider in priced:
            priced[provider].append(name)
    found = {
        model.id: model
        for provider, credentials in enabled.items()
        for listed in _listed(snapshot, credentials, priced[provider])
        if (model := _callable(snapshot, provider, listed)) is not None
    }
    return {model.id: model for model in (*_names(snapshot), *(found[name] for name in sorted(found)))}


def called_model(snapshot: ProjectSnapshot, called: Candidate) -> CallableModel | None:
    row = prefix_of(called.upstream_model)
    if row is not None and row.prefix == called.upstream_model:
        return None
    return _callable(snapshot, called.provider, ListedModel(called.upstream_model))


def _listed(snapshot: ProjectSnapshot, credentials: Credentials, priced: Iterable[str]) -> Iterable[ListedModel]:
    own = snapshot.listed_models.get(credentials.provider)
    listed = (ListedModel(name) for name in catalog_names(credentials, priced)) if own is None else own
    deployments = [one for one in snapshot.deployments.values() if one.provider == credentials.provider]
    named = dict.fromkeys(model for one in deployments for model in one.models)
    if not named:
        return listed
    # Deployments with models of their own serve these alone; one without serves what its provider does.
    known = {model.id: model for model in listed}
    served = {name: known.get(name, ListedModel(name)) for name in named}
    return served.values() if all(one.models for one in deployments) else (known | served).values()


def _callable(snapshot: ProjectSnapshot, provider: str, listed: ListedModel) -> CallableModel | None:
    operations = tuple(_served(provider, listed.id, operations_of(provider, listed)))
    if not operations:
        return None
    row, full_id = prefix_of(listed.id), f"{provider}/{listed.id}"
    candidates = resolve(listed.id, snapshot.credentials, snapshot.disabled) if row is not None else []
    is_plain = bool(candidates) and candidates[0].provider == provider and listed.id not in snapshot.groups
    known = capabilities_of(provider, listed.id) or _UNKNOWN
    return CallableModel(
        id=listed.id if is_plain else full_id,
        full_id=full_id,
        provider=provider,
        owned_by=row.owned_by if row is not None else traits_of(provider).owned_by or provider,
        prefix=row.prefix if row is not None and is_plain else f"{provider}/",
        name=listed.name or listed.id,
        created=listed.created,
        context_window=listed.context_window or known.context_window,
        max_output_tokens=listed.max_output_tokens or known.max_output_tokens,
        abilities=known,
        operations=operations,
        price=snapshot.price_of(provider, listed.id),
    )


def _served(provider: str, model: str, operations: tuple[str, ...]) -> Iterator[str]:
    """Yields the operations that the gateway serves with the model.

    Every provider answers conversations. Another operation, or a model that only knows the Responses API, needs a
    provider that is called by that operation.
    """
    every = operations != RESPONSES_ONLY
    for operation in operations:
        if (every and operation in TEXT) or _is_spoken(provider, model, operation):
            yield operation


def _is_spoken(provider: str, model: str, operation: str) -> bool:
    adapter = native_adapter(provider, operation)
    return adapter is not None and adapter.serves(model)


def _names(snapshot: ProjectSnapshot) -> Iterator[CallableModel]:
    for name in (AUTO, *snapshot.groups):
        models = list(snapshot.groups[name].weights) if name in snapshot.groups else snapshot.models_of(AUTO)
        found = [first for model in models for first in resolve(model, snapshot.credentials, snapshot.disabled)[:1]]
        if not found:
            continue
        yield CallableModel(
            id=name,
            full_id=name,
            provider=found[0].provider,
            owned_by=found[0].provider,
            prefix=name,
            name=name,
            created=0,
            context_window=None,
            max_output_tokens=None,
            abilities=_UNKNOWN,
            operations=TEXT,
            price=None,
        )
