"""Finds the models that a project can call or has called, and the known ones of other providers.

One query reads the figures of all models; what a page does not show is not looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from django.utils import timezone

from analytics.parameters.ranges import TimeRange
from analytics.queries.groups import OfferFigures, list_models
from analytics.queries.summed import nothing
from core.keys.services import KeyRecord, key_record
from core.models import ApiKey
from core.rights.scopes import GATEWAY
from core.wire.shown import seen_as
from gateway.model_list.catalog import CallableModel, callable_models
from gateway.protocol.wire import AUTO
from gateway.selectors import project_settings
from gateway.snapshot.loader import load_models
from gateway.snapshot.project import PriceTable, ProjectSnapshot
from integrations.capabilities.lookup import Capabilities, capabilities_of, family_of
from integrations.model_lists.catalog import catalog_names
from integrations.pricing.cost import Price
from integrations.pricing.selectors import price_mark
from integrations.providers.base import Credentials
from integrations.registry import provider_title, providers
from integrations.selectors import SANDBOX, price_table

_MAX_MODELS = 10_000
_UNKNOWN, _UNUSED = Capabilities(), nothing(OfferFigures, model="", provider="")


@dataclass(frozen=True, slots=True)
class Offer:
    """A model at one provider.

    `name` is its name there, `family` its name at every provider, and `id` the one that requests send. Counts of tokens
    are None if unknown. `figures` are those of the range; `groups` are the model groups that name it.
    """

    name: str
    family: str
    provider: str
    id: str
    title: str
    is_callable: bool
    owned_by: str
    operations: tuple[str, ...]
    context_window: int | None
    max_output_tokens: int | None
    abilities: Capabilities
    price: Price | None
    figures: OfferFigures
    groups: tuple[str, ...]

    @property
    def provider_title(self) -> str:
        return provider_title(self.provider)

    @property
    def requests(self) -> int:
        return self.figures.request_count


@dataclass(frozen=True, slots=True)
class KeysOfModel:
    all_keys: bool
    names: tuple[str, ...]


Figures = Mapping[tuple[str, str], OfferFigures]
"""The project's own figures of a range by provider and model."""

_NONE: Figures = {}


def read_figures(project_id: UUID, time_range: TimeRange) -> Figures:
    _, rows = list_models(time_range.of(project_id), row=OfferFigures, limit=_MAX_MODELS)
    return {(row.provider, row.model): row for row in rows if row.provider and row.model}


class Catalog:
    """The models of a project, read once. Without `figures` the request log is not queried."""

    def __init__(self, project_id: UUID, figures: Figures = _NONE) -> None:
        self._project_id = project_id
        self._snapshot = load_models(project_id, _prices(price_mark()), project_settings(project_id))
        self._figures = figures
        self._groups = _groups_by_model(self._snapshot)
        self._keys: tuple[tuple[str, KeyRecord], ...] | None = None

    def offers(self, *, with_others: bool = False) -> list[Offer]:
        """Returns the models that can be called or were called in the range, the most used first.

        If `with_others`, known models of providers without a key in this project follow.
        """
        found = {(offer.provider, offer.name): offer for offer in self._callable()}
        others = [*self._figures, *(self._others() if with_others else ())]
        found |= {place: self._known(*place) for place in others if place not in found}
        return sorted(found.values(), key=_most_used)

    def offers_of(self, family: str) -> list[Offer]:
        found = {(offer.provider, offer.name): offer for offer in self._callable() if offer.family == family}
        others = (place for place in (*self._figures, *self._others()) if family_of(*place) == family)
        found |= {place: self._known(*place) for place in others if place not in found}
        return sorted(found.values(), key=lambda offer: (not offer.is_callable, offer.provider, offer.name))

    def keys_of(self, offer: Offer) -> KeysOfModel:
        if self._keys is None:
            self._keys = tuple(_gateway_keys(self._project_id))
        if not offer.is_callable:
            return KeysOfModel(False, ())
        places = [
            one.name
            for one in self._snapshot.deployments.values()
            if one.provider == offer.provider and one.serves(offer.name)
        ]
        names = tuple(
            name
            for name, key in self._keys
            if any(key.permits(offer.provider, offer.name, place) for place in (places or [""]))
        )
        return KeysOfModel(len(names) == len(self._keys) > 0, names)

    def _callable(self) -> Iterator[Offer]:
        names = {AUTO, *self._snapshot.groups}
        for model in callable_models(self._snapshot).values():
            if model.id not in names:
                yield self._offer(model)

    def _offer(self, model: CallableModel) -> Offer:
        provider = model.provider
        name = model.full_id.removeprefix(f"{provider}/")
        return seen_as(
            Offer,
            model,
            name=name,
            family=family_of(provider, name),
            title=model.name,
            is_callable=True,
            figures=self._figures.get((provider, name), _UNUSED),
            groups=self._groups_of(model.id, model.full_id),
        )

    def _known(self, provider: str, name: str) -> Offer:
        known = capabilities_of(provider, name) or _UNKNOWN
        return Offer(
            name=name,
            family=family_of(provider, name),
            provider=provider,
            id=f"{provider}/{name}",
            title=name,
            is_callable=False,
            owned_by="",
            operations=(),
            context_window=known.context_window,
            max_output_tokens=known.max_output_tokens,
            abilities=known,
            price=self._snapshot.price_of(provider, name),
            figures=self._figures.get((provider, name), _UNUSED),
            groups=self._groups_of(f"{provider}/{name}"),
        )

    def _others(self) -> Iterator[tuple[str, str]]:
        priced: dict[str, list[str]] = {}
        for provider, name in self._snapshot.prices:
            priced.setdefault(provider, []).append(name)
        for provider in providers():
            if provider not in self._snapshot.credentials and provider != SANDBOX:
                nowhere = Credentials(0, provider, "", "")
                yield from ((provider, name) for name in catalog_names(nowhere, priced.get(provider, ())))

    def _groups_of(self, *names: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(group for name in names for group in self._groups.get(name, ())))


def _most_used(offer: Offer) -> tuple[int, bool, str, str]:
    return (-offer.requests, not offer.is_callable, offer.family, offer.provider)


def _groups_by_model(snapshot: ProjectSnapshot) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, group in snapshot.groups.items():
        for model in group.weights:
            found.setdefault(model, []).append(name)
    return found


def _gateway_keys(project_id: UUID) -> Iterable[tuple[str, KeyRecord]]:
    rows = ApiKey.objects.for_project(project_id).filter(revoked_at=None).order_by("name", "pk")
    now = timezone.now()
    for row in rows:
        key = key_record(row)
        if GATEWAY in key.scopes and not key.expired(now):
            yield row.name, key


@lru_cache(maxsize=1)
def _prices(mark: tuple[object, ...]) -> PriceTable:
    """The prices are read again when `mark` changes, that is, when a price changed."""
    return price_table()
