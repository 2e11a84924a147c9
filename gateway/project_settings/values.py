from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import msgspec

from gateway.project_settings.declaration import Kind, declared, parts
from gateway.project_settings.settings import ProjectSettings


def read_settings(values: Mapping[str, Any]) -> ProjectSettings:
    """Raises msgspec.ValidationError for a value that a setting cannot have."""
    return msgspec.convert(values, ProjectSettings)


def stored(values: ProjectSettings | Mapping[str, Any]) -> dict[str, Any]:
    """Returns values as JSON; money becomes text with all its places."""
    return _plain(values, lambda amount: f"{amount.normalize():f}")


def as_wire(settings: ProjectSettings) -> dict[str, Any]:
    return _plain(settings, float)


def wire_values(values: Mapping[str, Any]) -> dict[str, Any]:
    money = {one.name for one in declared(ProjectSettings) if one.kind is Kind.MONEY}
    return {name: float(value) if name in money and value is not None else value for name, value in values.items()}


def by_part(values: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for one in parts(ProjectSettings):
        holder, _, name = one.path.rpartition(".")
        held = values.get(holder) or {} if holder else values
        if name in held:
            found[one.path] = held[name]
    return found


def audited(settings: ProjectSettings) -> dict[str, Any]:
    """Of an address only the host is kept, because webhooks carry tokens in their paths."""
    urls = {one.path for one in parts(ProjectSettings) if one.kind is Kind.URL}
    found = by_part(stored(settings))
    return {path: _host(value) if path in urls else value for path, value in found.items()}


def _host(address: str) -> str:
    return f"{urlsplit(address).netloc}/…" if address else ""


def _plain(values: Any, amount: Callable[[Decimal], Any]) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, Decimal):
            return amount(value)
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list | tuple) else value

    builtins = msgspec.to_builtins(values, builtin_types=(Decimal,))
    return {name: plain(value) for name, value in builtins.items()}
