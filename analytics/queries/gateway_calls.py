"""Finds the requests of the gateway in traces, by the spans that the gateway has made of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from analytics.clickhouse import client

_SQL = """
SELECT TraceId AS trace_id, toInt64(toUnixTimestamp64Nano(Timestamp)) AS started_ns
FROM otel_traces
WHERE ProjectId = {project:UUID} AND TraceId IN {traces:Array(String)}
    AND ScopeName = 'prompt_gateway' AND SpanKind = 'Server'
"""


@dataclass(frozen=True)
class GatewayCallRow:
    """A request of the gateway; `started_ns` is Unix time in nanoseconds."""

    trace_id: str
    started_ns: int


def gateway_calls(project_id: UUID, trace_ids: Collection[str]) -> list[GatewayCallRow]:
    """Returns the requests in these traces. Raises the errors of the store."""
    params = {"project": project_id, "traces": sorted(trace_ids)}
    return client.query(_SQL, params, row=GatewayCallRow, name="telemetry.gateway_calls")
