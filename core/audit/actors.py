"""The names of those who changed something, where a row keeps who it was as `user:<name>`, `key:<id>` or a word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.models import ApiKey


def actor_names(actors: Iterable[str]) -> Mapping[str, str]:
    """Returns by actor the name that people know: a person's, or what kind of caller it was beside the name of a key or
    a command. One query."""
    found = set(actors)
    keys = {
        int(name) for kind, _, name in (actor.partition(":") for actor in found) if kind == "key" and name.isdecimal()
    }
    names = dict(ApiKey.objects.filter(pk__in=keys).values_list("pk", "name")) if keys else {}
    return {actor: _name(actor, names) for actor in found}


def actor_name(actor: str) -> str:
    """Returns the name of one actor, as `actor_names` does; empty for none."""
    return actor_names([actor])[actor] if actor else ""


def _name(actor: str, keys: Mapping[int, str]) -> str:
    kind, _, name = actor.partition(":")
    if kind == "key" and name.isdecimal():
        return f"{keys[int(name)]} (key)" if int(name) in keys else "a deleted key"
    if kind == "user" and name:
        return name
    return f"{name} ({kind})" if name else actor
