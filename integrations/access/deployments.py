from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from core.rendezvous import score
from integrations.models import ProviderIntegration
from integrations.pricing.cost import Price
from integrations.pricing.models import PriceSource
from integrations.providers.base import Credentials
from integrations.registry import provider_title


@dataclass(frozen=True, slots=True)
class Deployment:
    """One integration as requests choose it.

    `models` maps the clients' model names to its own; if empty, it serves every model of its kind. `prices` are its
    own, by the clients' names. `rpm` and `tpm` are the vendor's limits, None without one.
    """

    name: str
    credentials: Credentials
    weight: int = 1
    priority: int = 0
    rpm: int | None = None
    tpm: int | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)

    @property
    def provider(self) -> str:
        return self.credentials.provider

    @property
    def is_plain(self) -> bool:
        return self.name == self.provider and not (self.models or self.prices or self.rpm or self.tpm)

    @property
    def is_limited(self) -> bool:
        return self.rpm is not None or self.tpm is not None

    def serves(self, model: str) -> bool:
        return not self.models or model in self.models


def title_of(provider: str, name: str) -> str:
    title = provider_title(provider)
    return title if name == provider else f"{name} ({title})"


def rank(deployment: Deployment, key: str) -> tuple[int, float]:
    """Sorts by priority, then so that each deployment comes first for its weight's share of the keys."""
    return deployment.priority, score(key, deployment.name, deployment.weight)


def deployment_of(row: ProviderIntegration, credentials: Credentials) -> Deployment:
    return Deployment(
        name=row.name,
        credentials=credentials,
        weight=row.weight,
        priority=row.priority,
        rpm=row.rpm,
        tpm=row.tpm,
        models={entry["model"]: entry["deployment"] for entry in row.served_models},
        prices={entry["model"]: _price(entry) for entry in row.own_prices},
    )


def first_of_each_kind(deployments: Iterable[Deployment]) -> dict[str, Credentials]:
    found: dict[str, Credentials] = {}
    for deployment in deployments:
        found.setdefault(deployment.provider, deployment.credentials)
    return found


def in_use(deployments: Iterable[Deployment]) -> tuple[Deployment, ...]:
    """Returns the deployments by priority and name; none if each is the plain one of its kind, so that there is no
    choice."""
    found = sorted(deployments, key=lambda one: (one.priority, one.name != one.provider, one.name))
    several = len({one.provider for one in found}) < len(found)
    return tuple(found) if several or not all(one.is_plain for one in found) else ()


def _price(entry: Mapping[str, Any]) -> Price:
    cache_read, cache_write = entry.get("cache_read_cost_per_1m"), entry.get("cache_write_cost_per_1m")
    return Price(
        Decimal(entry["input_cost_per_1m"]),
        Decimal(entry["output_cost_per_1m"]),
        None if cache_read is None else Decimal(cache_read),
        None if cache_write is None else Decimal(cache_write),
        source=PriceSource.MANUAL.value,
    )
