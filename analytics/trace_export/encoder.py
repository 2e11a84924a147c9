from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from django.conf import settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from analytics.telemetry.request_spans import SERVICE_NAME
from analytics.telemetry.rows import SpanRow

_SECOND: Final = 1_000_000_000
_KINDS: Final = {"Server": Span.SPAN_KIND_SERVER, "Client": Span.SPAN_KIND_CLIENT}
_COUNTS: Final = "gen_ai.usage."


def encoded(project_id: str, rows: Iterable[SpanRow]) -> bytes:
    """Returns a gzipped ExportTraceServiceRequest, identical for the same spans on one host."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.extend(
        _text(name, value)
        for name, value in (
            ("service.name", SERVICE_NAME),
            ("service.version", settings.SPECTACULAR_SETTINGS["VERSION"]),
            ("host.name", settings.HOST_NAME),
            ("prompt_gateway.project_id", project_id),
        )
    )
    scope = group.scope_spans.add()
    scope.scope.name = SERVICE_NAME
    scope.spans.extend(_span(row) for row in rows)
    return gzip.compress(request.SerializeToString(), compresslevel=5, mtime=0)


def _span(row: SpanRow) -> Span:
    start = _nanoseconds(row.time)
    return Span(
        trace_id=bytes.fromhex(row.trace_id),
        span_id=bytes.fromhex(row.span_id),
        parent_span_id=bytes.fromhex(row.parent_span_id),
        name=row.span_name,
        kind=_KINDS.get(row.span_kind, Span.SPAN_KIND_INTERNAL),
        start_time_unix_nano=start,
        end_time_unix_nano=start + row.duration_ns,
        attributes=[KeyValue(key=name, value=_value(name, text)) for name, text in row.attributes.items()],
        status=Status(code=Status.STATUS_CODE_ERROR, message=row.status_message)
        if row.status_code == "Error"
        else None,
    )


def _nanoseconds(time: str) -> int:
    whole = datetime.fromisoformat(time[:19]).replace(tzinfo=UTC)
    return int(whole.timestamp()) * _SECOND + int(time[20:])


def _text(name: str, value: str) -> KeyValue:
    return KeyValue(key=name, value=AnyValue(string_value=value))


def _integer(text: str) -> AnyValue:
    return AnyValue(int_value=int(text))


def _number(text: str) -> AnyValue:
    return AnyValue(double_value=float(text))


def _texts(text: str) -> AnyValue:
    value = AnyValue()
    value.array_value.values.extend(AnyValue(string_value=item) for item in json.loads(text))
    return value


# Spans are stored with texts as all of their values.
_TYPES: Final[Mapping[str, Callable[[str], AnyValue]]] = {
    "http.response.status_code": _integer,
    "gen_ai.request.stream": lambda text: AnyValue(bool_value=text == "true"),
    "gen_ai.response.finish_reasons": _texts,
    "gen_ai.response.time_to_first_chunk": _number,
    "prompt_gateway.cost_usd": _number,
}


def _value(name: str, text: str) -> AnyValue:
    read = _integer if name.startswith(_COUNTS) else _TYPES.get(name)
    return read(text) if read else AnyValue(string_value=text)
