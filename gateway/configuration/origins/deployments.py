from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.core.exceptions import ValidationError

from gateway.tables.group import MAX_MEMBERS, NAME_CHARACTERS, validate_group_name
from integrations.registry import owner_of

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_PER_DEPLOYMENT = ("rpm", "tpm", "weight", "priority")


@dataclass(frozen=True, slots=True)
class Served:
    asked: str
    deployment: str
    prices: Mapping[str, Any] = field(default_factory=dict)
    # The name without the provider before it: `groq/x` is the model `x` of groq alone.
    name: str = ""


@dataclass
class _Integration:
    provider: str
    access: dict[str, Any]
    models: list[Served] = field(default_factory=list)
    serves_all: bool = False

    def takes(self, provider: str, access: Mapping[str, Any], served: Served | None) -> bool:
        """Limits and weights belong to one deployment: an integration that has them takes no second model."""
        if self.provider != provider or self.access != access or self.serves_all != (served is None):
            return False
        is_own = any(name in access for name in _PER_DEPLOYMENT)
        return served is None or not (is_own or any(one.name == served.name for one in self.models))


class Deployments:
    def __init__(self) -> None:
        self._integrations: list[_Integration] = []
        self._groups: dict[str, dict[str, Any]] = {}

    def add(self, provider: str, access: Mapping[str, Any], served: Served | None) -> None:
        if served is not None:
            served = replace(served, name=_bare(provider, served.asked))
        found = next((one for one in self._integrations if one.takes(provider, access, served)), None)
        if found is None:
            found = _Integration(provider, dict(access), serves_all=served is None)
            self._integrations.append(found)
        if served is not None:
            found.models.append(served)

    def add_alias(self, alias: str, name: str) -> bool:
        found = False
        for one in self._integrations:
            for served in [served for served in one.models if served.asked == name]:
                one.models.append(replace(served, asked=alias, name=_bare(one.provider, alias)))
                found = True
        return found

    def has(self, provider: str) -> bool:
        return any(one.provider == provider and one.serves_all for one in self._integrations)

    def providers_of(self, name: str) -> list[str]:
        return list(dict.fromkeys(one.provider for one in self._integrations if _lists(one, name)))

    def shared(self) -> list[str]:
        """Returns ungrouped names that more providers serve here than in the source.

        `provider/name` is here a model of that provider, which requests for `name` find too.
        """
        asked = {served.asked for one in self._integrations for served in one.models}
        bare = {served.name for one in self._integrations for served in one.models if served.name != served.asked}
        return sorted(asked & bare - self._groups.keys())

    def group(self, name: str, fallbacks: Sequence[str]) -> tuple[str, list[str]]:
        """Makes a group of a model and its fallbacks.

        Returns the group's name, which differs from the model's if that has a meaning already, and the models that
        exceed the maximum.
        """
        first = self._members(name)
        rest = [member for fallback in fallbacks for member in self._members(fallback)]
        members = dict(first)
        # A weight of 0 is for when the others fail, in the order of the list.
        members |= {model: 0 for model, _ in rest if model not in members}
        kept = list(members)[:MAX_MEMBERS]
        strategy = "weighted" if len(first) > 1 else "ordered"
        group = group_name(name)
        self._groups[group] = {
            "strategy": strategy,
            "members": [
                {"model": model, **({"weight": members[model]} if strategy == "weighted" else {})} for model in kept
            ],
        }
        return group, list(members)[MAX_MEMBERS:]

    def in_order(self, group: str) -> None:
        members = self._groups[group]["members"]
        self._groups[group] = {"strategy": "ordered", "members": [{"model": one["model"]} for one in members]}

    def integrations(self) -> dict[str, Any]:
        counts: dict[str, int] = {}
        found = {}
        for one in self._integrations:
            number = counts[one.provider] = counts.get(one.provider, 0) + 1
            name = one.provider if number == 1 else f"{one.provider}-{number}"
            found[name] = {**({} if name == one.provider else {"provider": one.provider}), **one.access, **_models(one)}
        return found

    def groups(self) -> dict[str, Any]:
        return self._groups

    def _members(self, name: str) -> list[tuple[str, int]]:
        weights: dict[str, int] = {}
        for one in self._integrations:
            if _lists(one, name):
                model = f"{one.provider}/{_bare(one.provider, name)}"
                weights[model] = weights.get(model, 0) + int(one.access.get("weight", 1))
        return list(weights.items()) or [(name, 1)]


def _lists(one: _Integration, name: str) -> bool:
    return any(served.asked == name for served in one.models)


def _bare(provider: str, name: str) -> str:
    return name[len(provider) + 1 :] if owner_of(name) == provider else name


def _models(one: _Integration) -> dict[str, Any]:
    models = [
        {"model": served.name, **({} if served.deployment == served.name else {"deployment": served.deployment})}
        for served in one.models
    ]
    prices = [{"model": served.name, **served.prices} for served in one.models if served.prices]
    return {**({"models": models} if models else {}), **({"prices": prices} if prices else {})}


def group_name(name: str) -> str:
    if _is_group_name(name):
        return name
    return f"group-{_NOT_IN_A_NAME.sub('-', name).strip('-')}"[:NAME_CHARACTERS]


def _is_group_name(name: str) -> bool:
    try:
        validate_group_name(name)
    except ValidationError:
        return False
    return len(name) <= NAME_CHARACTERS


def per_million(cost: float | int | None) -> str | None:
    """Converts a cost per token to a price per million tokens."""
    return None if cost is None else f"{round(cost * 1_000_000, 10):.10f}".rstrip("0").rstrip(".")


def prices_of(costs: Mapping[str, float | int | None]) -> dict[str, str]:
    found = {name: price for name, cost in costs.items() if (price := per_million(cost)) is not None}
    return found if {"input_cost_per_1m", "output_cost_per_1m"} <= set(found) else {}
