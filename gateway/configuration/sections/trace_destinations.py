"""The section `trace_destinations`: the collectors that get the project's spans (docs/trace-export.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.models import TraceDestination
from analytics.serializers.trace_destinations import NewTraceDestinationSerializer
from analytics.trace_export.destinations import (
    add_destination,
    change_destination,
    completed_endpoint,
    headers_of,
    list_destinations,
    masked_headers,
    remove_destination,
)
from gateway.configuration.problems import Path
from gateway.configuration.secrets import plain, read_secrets, stored_secrets
from gateway.configuration.sections.base import Differences, EntriesSection, Values, checked

_HEADERS = "headers"


class TraceDestinationsSection(EntriesSection):
    name = "trace_destinations"
    without_default = ("endpoint", _HEADERS)
    defaults = {"enabled": True, "sampling_ratio": 1.0, "include_content": False}

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        rest = {field: value for field, value in given.items() if field != _HEADERS}
        headers = read_secrets(given.get(_HEADERS), (*path, _HEADERS))
        data = checked(NewTraceDestinationSerializer, {**rest, "name": name}, path)
        values = {field: data.get(field, default) for field, default in self.defaults.items()}
        return {
            "endpoint": completed_endpoint(data["endpoint"]),
            **values,
            **({} if headers is None else {_HEADERS: headers}),
        }

    def stored(self) -> Mapping[str, Values]:
        return {row.name: _values(row) for row in list_destinations(self.project_id)}

    def create(self, name: str, values: Values) -> None:
        add_destination(self.project_id, {"name": name, **plain(values)})

    def change(self, name: str, values: Values, differences: Differences) -> None:
        change_destination(self.project_id, self._row(name).pk, plain(values))

    def delete(self, name: str) -> None:
        remove_destination(self.project_id, self._row(name).pk)

    def _row(self, name: str) -> TraceDestination:
        return list_destinations(self.project_id).get(name=name)


def _values(row: TraceDestination) -> Values:
    values: Values = {
        "endpoint": row.endpoint,
        "enabled": row.enabled,
        "sampling_ratio": row.sampling_ratio,
        "include_content": row.include_content,
    }
    if row.encrypted_headers:
        values[_HEADERS] = stored_secrets(masked_headers(row), lambda: headers_of(row))
    return values
