"""Portkey's configs (https://portkey.ai/docs/api-reference/inference-api/config-object): each becomes a model group."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

from gateway.configuration.origins.bounds import cache_settings, retry_settings
from gateway.configuration.origins.deployments import group_name
from gateway.configuration.origins.litellm_models import default_secrets
from gateway.configuration.origins.remaining import Imported, Remaining
from gateway.configuration.problems import InvalidConfigurationError, Path, Problem
from gateway.configuration.secrets import Secret
from gateway.tables.group import MAX_MEMBERS, MAX_WEIGHT
from integrations.registry import is_known, providers, traits_of

_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_UNNAMED = "portkey"
_OWN = {"strategy", "targets", "provider", "virtual_key", "virtualKey"}
_WEEK = 7 * 86_400
# Where Portkey's name of a provider is another one than ours.
_PROVIDERS = {
    "vertex-ai": "google_vertex",
    "mistral-ai": "mistral",
    "together-ai": "together",
    "perplexity-ai": "perplexity",
    "fireworks-ai": "fireworks",
    "x-ai": "xai",
    "azure-ai": "openai_compatible",
}
_OPTIONS = {
    "custom_host": "base_url",
    "azure_api_version": "api_version",
    "api_version": "api_version",
    "aws_region": "region",
    "vertex_project_id": "project",
    "vertex_region": "location",
}
_SECRETS = {
    "api_key": "api_key",
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}
_PROJECT_WIDE = "becomes a setting of the project, for all of its requests"
REASONS: Mapping[str, str] = {
    "*on_status_codes*": "attempts and fallbacks follow every failure that may pass (docs/routing.md)",
    "*request_timeout": "time-outs are settings of the service (docs/settings.md)",
    "*guardrails*": "guardrails are settings of the project (docs/guardrails.md)",
    "*_hooks*": "guardrails are settings of the project (docs/guardrails.md)",
    "*.strategy.conditions*": "routes do not depend on metadata: make a group for each case",
    "*.forward_headers*": "headers of clients are not passed on (docs/surfaces.md)",
    "*.retry.use_retry_after_header": "it is always kept to",
    "*.metadata*": "requests are described by the headers of docs/surfaces.md",
}


@dataclass(frozen=True, slots=True)
class _Share:
    """`share` is a part of all requests; 0 is for when the others fail."""

    member: str
    share: float


def read(values: Any, environ: Mapping[str, str]) -> Imported:
    return _Reading({name: _snake(config) for name, config in _configs(values)}, environ).project()


def _configs(values: Any) -> Iterator[tuple[str, Any]]:
    """Yields the configs of a file: one by itself, an answer of Portkey's API, or several by name or in a list."""
    found = values.get("data", values) if isinstance(values, Mapping) else values
    if isinstance(found, Mapping) and isinstance(found.get("config"), Mapping):
        found = [found]
    if isinstance(found, list):
        for place, one in enumerate(found):
            if not isinstance(one, Mapping) or not isinstance(one.get("config"), Mapping):
                raise InvalidConfigurationError([Problem((place,), "Must be an object with a config.")])
            yield str(one.get("name") or one.get("slug") or f"{_UNNAMED}-{place + 1}"), one["config"]
    elif isinstance(found, Mapping) and not _OWN & found.keys():
        yield from found.items()
    elif isinstance(found, Mapping):
        yield _UNNAMED, found
    else:
        raise InvalidConfigurationError([Problem((), "Must be a config, or configs by name.")])


class _Reading:
    def __init__(self, configs: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self._remaining, self._environ = Remaining(configs, REASONS), environ
        self._integrations: dict[str, dict[str, Any]] = {}
        self._groups: dict[str, Any] = {}
        self._settings: dict[str, Any] = {}

    def project(self) -> Imported:
        for name in self._remaining.names():
            self._read_config(name)
        found = {"settings": self._settings, "integrations": self._integrations, "model_groups": self._groups}
        return Imported({name: section for name, section in found.items() if section}, self._remaining.told())

    def _read_config(self, name: str) -> None:
        remaining, path = self._remaining, (name,)
        shares = self._shares(path)
        self._read_retries(path)
        self._read_cache(path)
        members = _weights(shares)
        if not members:
            return
        group = group_name(name)
        remaining.note(path, f"clients send {group} as model, in place of the config's id")
        if len(members) > MAX_MEMBERS:
            remaining.note(path, f"a group has at most {MAX_MEMBERS} models: the last ones are left out")
        is_ordered = sum(weight > 0 for weight in members.values()) == 1
        self._groups[group] = {
            "strategy": "ordered" if is_ordered else "weighted",
            "members": [
                {"model": model, **({} if is_ordered else {"weight": weight})}
                for model, weight in list(members.items())[:MAX_MEMBERS]
            ],
        }

    def _shares(self, path: Path) -> list[_Share]:
        remaining = self._remaining
        mode = remaining.take_text(*path, "strategy", "mode") or "single"
        count = remaining.size(*path, "targets")
        weights = [remaining.take_number(*path, "targets", place, "weight") for place in range(count)]
        if mode == "conditional":
            return self._default_target(path, count)
        children = [self._shares((*path, "targets", place)) for place in range(count)]
        if not count:
            return self._target(path)
        if mode == "loadbalance":
            given = [1.0 if weight is None else float(weight) for weight in weights]
            total = sum(given) or 1.0
            parts = [
                _Share(one.member, one.share * weight / total)
                for shares, weight in zip(children, given, strict=True)
                for one in shares
            ]
            if any(not one.share for shares in children for one in shares):
                remaining.note((*path, "strategy"), "any member takes over for another: a group has one order of all")
            return sorted(parts, key=lambda one: not one.share)
        first, *others = children
        return [*first, *(_Share(one.member, 0.0) for shares in others for one in shares)]

    def _default_target(self, path: Path, count: int) -> list[_Share]:
        remaining = self._remaining
        wanted = remaining.take_text(*path, "strategy", "default")
        names = [remaining.take_text(*path, "targets", place, "name") for place in range(count)]
        children = [self._shares((*path, "targets", place)) for place in range(count)]
        return children[names.index(wanted)] if wanted in names else children[0] if children else []

    def _target(self, path: Path) -> list[_Share]:
        remaining = self._remaining
        remaining.take(*path, "name")
        model = remaining.take_text(*path, "override_params", "model")
        slug, provider = self._provider(path, model)
        if not provider:
            remaining.note(path, f"is left out: no provider here is {slug or 'named'}; say it in the field provider")
            remaining.take(*path)
            return []
        model = model.removeprefix(f"@{slug}/")
        deployment = remaining.take_text(*path, "azure_deployment_id") or remaining.take_text(*path, "deployment_id")
        name = self._integration(slug, provider, self._access(path, slug, provider))
        if model and deployment and deployment != model:
            served = {"model": model, "deployment": deployment}
            models = self._integrations[name].setdefault("models", [])
            models += [served] if served not in models else []
        if not (model or deployment):
            remaining.note(path, f"has no model: clients send {name}/<model>")
            return []
        return [_Share(f"{name}/{model or deployment}", 1.0)]

    def _provider(self, path: Path, model: str) -> tuple[str, str]:
        given, key = (self._remaining.take_text(*path, field) for field in ("provider", "virtual_key"))
        at = next((text[1:].partition("/")[0] for text in (given, model) if text.startswith("@")), "")
        slug = key or at
        name = "" if given.startswith("@") else given
        return slug or _ours(name), _ours(name) or _guessed(slug)

    def _integration(self, slug: str, provider: str, access: Mapping[str, Any]) -> str:
        wanted = {**({} if slug == provider else {"provider": provider}), **access}
        names = (slug if number == 1 else f"{slug}-{number}" for number in range(1, len(self._integrations) + 2))
        for name in names:
            stored = self._integrations.setdefault(name, dict(wanted))
            if {field: value for field, value in stored.items() if field != "models"} == wanted:
                return name
        raise AssertionError("one name more than there are integrations is free")

    def _access(self, path: Path, slug: str, provider: str) -> dict[str, Any]:
        remaining = self._remaining
        found: dict[str, Any] = {}
        for theirs, ours in _OPTIONS.items():
            if given := remaining.take_text(*path, theirs):
                found[ours] = given
        if resource := remaining.take_text(*path, "azure_resource_name") or remaining.take_text(*path, "resource_name"):
            found["base_url"] = f"https://{resource}.openai.azure.com"
        for theirs, ours in _SECRETS.items():
            if given := remaining.take_text(*path, theirs):
                found[ours] = Secret(given, "in the file itself")
        if parameters := remaining.take_object(*path, "override_params"):
            found["default_parameters"] = parameters
            remaining.note((*path, "override_params"), "are used where a client leaves them out")
        if not any(name in found for name in _SECRETS.values()) and not traits_of(provider).optional_secret:
            found |= self._key_of(path, slug, provider)
        return found

    def _key_of(self, path: Path, slug: str, provider: str) -> dict[str, Any]:
        secrets = default_secrets(provider, self._environ)
        if slug != provider and set(secrets) == {"api_key"} and "env" in secrets["api_key"]:
            secrets = {"api_key": {"env": f"{re.sub(r'[^A-Za-z0-9]+', '_', slug).upper()}_API_KEY"}}
        names = [str(next(iter(one.values()))) for one in secrets.values()]
        self._remaining.note(path, f"the key of {slug} stays with Portkey: it is read from {' and '.join(names)}")
        return secrets

    def _read_retries(self, path: Path) -> None:
        attempts = self._remaining.take_number(*path, "retry", "attempts")
        if attempts is not None:
            at = (*path, "retry", "attempts")
            self._set(path, "retry", retry_settings(self._remaining, at, attempts))

    def _read_cache(self, path: Path) -> None:
        remaining = self._remaining
        mode, seconds = remaining.take_text(*path, "cache", "mode"), remaining.take_number(*path, "cache", "max_age")
        if not mode:
            return
        if mode == "semantic":
            remaining.note((*path, "cache", "mode"), "the cache is by exact requests (docs/cache.md)")
        if seconds is None:
            remaining.note((*path, "cache"), "no max_age was given: answers are kept for seven days")
        self._set(path, "cache", cache_settings(remaining, (*path, "cache", "max_age"), seconds or _WEEK))

    def _set(self, path: Path, field: str, values: Mapping[str, Any]) -> None:
        differs = any(self._settings.get(name, value) != value for name, value in values.items())
        text = "differs from that of another config, whose value is taken" if differs else _PROJECT_WIDE
        self._remaining.note((*path, field), text)
        self._settings = {**values, **self._settings}


def _weights(shares: list[_Share]) -> dict[str, int]:
    parts: dict[str, float] = {}
    for one in shares:
        parts[one.member] = parts.get(one.member, 0.0) + one.share
    weights = {member: max(round(share * MAX_WEIGHT), 1 if share else 0) for member, share in parts.items()}
    divisor = gcd(*weights.values()) or 1
    return {member: weight // divisor for member, weight in weights.items()}


def _ours(name: str) -> str:
    found = _PROVIDERS.get(name, name.replace("-", "_"))
    return found if is_known(found) else ""


def _guessed(slug: str) -> str:
    """Portkey's slug of a key begins with the name that somebody gave it, often the provider's."""
    spelled = {**{name: name for name in providers()}, **_PROVIDERS}
    found = [name for name in spelled if slug.replace("-", "").startswith(re.sub("[-_]", "", name))]
    return spelled[max(found, key=len)] if found else ""


def _snake(value: Any) -> Any:
    """Portkey takes names of fields in either writing; what overrides a request keeps its own."""
    if isinstance(value, list):
        return [_snake(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    found = {_CAPITAL.sub(r"_\1", str(name)).lower() if _is_field(name) else name: one for name, one in value.items()}
    return {name: one if name == "override_params" else _snake(one) for name, one in found.items()}


def _is_field(name: Any) -> bool:
    return isinstance(name, str) and name[:1].islower() and name.isidentifier()
