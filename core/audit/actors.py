from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.models import ApiKey


def actor_names(actors: Iterable[str]) -> Mapping[str, str]:
    found = set(actors)
    keys = {
        int(name) for kind, _, name in (actor.partition(":") for actor in found) if kind == "key" and name.isdecimal()
    }
    names = dict(ApiKey.objects.filter(pk__in=keys).values_list("pk", "name")) if keys else {}
    return {actor: _name(actor, names) for actor in found}


def actor_name(actor: str) -> str:
    return actor_names([actor])[actor] if actor else ""


def _name(actor: str, keys: Mapping[int, str]) -> str:
    kind, _, name = actor.partition(":")
    if kind == "key" and name.isdecimal():
        return f"{keys[int(name)]} (key)" if int(name) in keys else "a deleted key"
    if kind == "user" and name:
        return name
    return f"{name} ({kind})" if name else actor
