"""Prompts of Helicone, as its API answers versions with their bodies
(https://docs.helicone.ai/rest/prompts/post-v1prompt-2025-query-version)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gateway.configuration.origins.prompts import content_of, entries_of, label_of, messages_of, variables_of
from gateway.configuration.origins.remaining import Imported, Remaining
from gateway.configuration.problems import InvalidConfigurationError, Path, Problem

# `{{hc:name:type}}` is a variable
# (https://docs.helicone.ai/features/advanced-usage/prompts/overview).
_VARIABLE = re.compile(r"\{\{\s*hc:([A-Za-z0-9_-]+):(\w+)\s*\}\}")
_TYPES = {"number": "number", "boolean": "boolean", "bool": "boolean", "object": "object", "array": "array"}
_PRODUCTION = "production"
_BOOKKEEPING = ("id", "created_at", "updated_at", "s3_url", "prompt_id")
REASONS: Mapping[str, str] = {
    "*.tags.*": "prompts have no tags: put them into the description",
    "*.prompt_body.*": "a request sends it itself, or default_parameters of the provider do",
}


def read(values: Any) -> Imported:
    """Accepts one object with `name` and `versions`, or a list; each part may be an API answer with `data` and `error`.

    Raises InvalidConfigurationError for values of another form.
    """
    remaining, given = entries_of(_unwrapped(values), "prompts, each with name and versions", REASONS)
    prompts: dict[str, Any] = {}
    names: set[str] = set()
    for place in range(len(given)):
        _read_prompt(remaining, str(place), prompts, names)
    return Imported({"prompts": prompts} if prompts else {}, remaining.told())


def _unwrapped(value: Any) -> Any:
    if isinstance(value, Mapping) and value.keys() == {"data", "error"}:
        return _unwrapped(value["data"])
    if isinstance(value, list):
        return [_unwrapped(one) for one in value]
    if isinstance(value, Mapping) and "versions" in value:
        return {**value, "versions": _unwrapped(value["versions"])}
    return value


def _read_prompt(remaining: Remaining, place: str, prompts: dict[str, Any], names: set[str]) -> None:
    name = remaining.take_text(place, "name")
    if not name or name in names:
        problem = f"{name} is there twice." if name else "Is needed: a version by itself does not name its prompt."
        raise InvalidConfigurationError([Problem((place, "name"), problem)])
    names.add(name)
    for field in _BOOKKEEPING:
        remaining.take(place, field)
    count = remaining.size(place, "versions")
    order = sorted(range(count), key=lambda one: _version(remaining, (place, "versions", one)))
    versions: list[dict[str, Any]] = []
    labels: dict[str, int] = {}
    for one in order:
        path: Path = (place, "versions", one)
        content = _content(remaining, path, name)
        if content is None:
            continue
        versions.append({"number": len(versions) + 1, **content})
        for environment in _environments(remaining, path):
            if label := label_of(remaining, (*path, "environments"), environment):
                labels[label] = len(versions)
    if not versions:
        remaining.note((place,), f"{name} has no version with a text, and is left out")
        return
    prompts[name] = {"versions": versions, "active_version": labels.get(_PRODUCTION, len(versions)), "labels": labels}


def _version(remaining: Remaining, path: Path) -> tuple[float, float]:
    major = remaining.take_number(*path, "major_version")
    minor = remaining.take_number(*path, "minor_version")
    remaining.fill(path, {"_version": f"{major or 0}.{minor or 0}"})
    return major or 0, minor or 0


def _environments(remaining: Remaining, path: Path) -> list[str]:
    one = remaining.take_text(*path, "environment")
    return [str(name) for name in remaining.take_list(*path, "environments")] + ([one] if one else [])


def _content(remaining: Remaining, path: Path, name: str) -> dict[str, Any] | None:
    version = remaining.take_text(*path, "_version")
    for field in _BOOKKEEPING:
        remaining.take(*path, field)
    model = remaining.take_text(*path, "model")
    body: Path = (*path, "prompt_body")
    given = remaining.take_list(*body, "messages")
    if not given:
        remaining.note(path, f"{name} {version} has no prompt_body: fetch the version with its body")
        return None
    types: dict[str, str] = {}
    messages = messages_of(remaining, (*body, "messages"), given, lambda text: _rewritten(text, types))
    for variable in (one for one in types if "-" in one):
        remaining.note((*body, "messages"), f"the variable {variable} is called {variable.replace('-', '_')} here")
    message = remaining.take_text(*path, "commit_message")
    told = f"{version}: {message}" if message else version
    content = content_of(remaining, path, messages, parameters=body, message=told)
    if model:
        content.setdefault("model", model)
    known = {name.replace("-", "_"): kind for name, kind in types.items()}
    variables = variables_of([one["content"] for one in messages], known)
    return {**content, **({"variables": variables} if variables else {})}


def _rewritten(text: str, types: dict[str, str]) -> str:
    def placeholder(found: re.Match[str]) -> str:
        types[found[1]] = _TYPES.get(found[2], "string")
        return f"{{{{ {found[1].replace('-', '_')} }}}}"

    return _VARIABLE.sub(placeholder, text)
