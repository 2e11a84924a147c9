from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.models import TraceDestination
from analytics.serializers.trace_destinations import NewTraceDestinationSerializer
from analytics.trace_export.destinations import DESTINATIONS, completed_endpoint, headers_of, masked_headers
from gateway.configuration.problems import Path
from gateway.configuration.secrets import read_secrets, stored_secrets
from gateway.configuration.sections.base import Values
from gateway.configuration.sections.resource import ResourceSection


class TraceDestinationsSection(ResourceSection):
    name = "trace_destinations"
    without_default = ("endpoint",)
    defaults = {"enabled": True, "sampling_ratio": 1.0, "include_content": False}
    secrets = ("headers",)
    resource = DESTINATIONS
    body = NewTraceDestinationSerializer

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        headers = read_secrets(given.get("headers"), (*path, "headers"))
        values = super().read(name, {field: value for field, value in given.items() if field != "headers"}, path)
        values["endpoint"] = completed_endpoint(values["endpoint"])
        return values if headers is None else {**values, "headers": headers}

    def values_of(self, row: TraceDestination) -> Values:
        values = super().values_of(row)
        if row.encrypted_headers:
            values["headers"] = stored_secrets(masked_headers(row), lambda: headers_of(row))
        return values
