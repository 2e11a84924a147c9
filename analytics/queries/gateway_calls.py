"""Finds the requests of the gateway in traces."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from analytics.clickhouse import client
from analytics.identifiers import gateway_id
from analytics.queries.request_spans import first_moment

# A request without a trace of the client's has its own id for that of its trace. Requests of releases that stored spans
# are found by those.
_SQL = """
SELECT trace_id, 1000 * toUnixTimestamp64Micro(ts) AS started_ns FROM requests
WHERE project_id = {project:UUID} AND trace_id IN {traces:Array(String)} AND source = 'gateway'
    AND ts >= {since:DateTime64(6, 'UTC')}
UNION ALL
SELECT replaceAll(toString(request_id), '-', '') AS trace_id, 1000 * toUnixTimestamp64Micro(ts) AS started_ns
FROM requests AS r
WHERE project_id = {project:UUID} AND request_id IN {ids:Array(UUID)} AND r.trace_id = '' AND source = 'gateway'
    AND ts >= {since:DateTime64(6, 'UTC')}
UNION ALL
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
    ids = (gateway_id(str(UUID(trace_id))) for trace_id in trace_ids)
    params = {
        "project": project_id,
        "traces": sorted(trace_ids),
        "ids": [one for one in ids if one is not None],
        "since": first_moment(),
    }
    return client.query(_SQL, params, row=GatewayCallRow, name="telemetry.gateway_calls")
