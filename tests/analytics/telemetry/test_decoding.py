"""Protobuf and JSON of one export give the same records; on any bytes the decoder raises only its documented errors."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from analytics.telemetry import wire
from analytics.telemetry.body import Encoding
from analytics.telemetry.errors import LargeExportError, MalformedExportError
from analytics.telemetry.exports import read_export
from analytics.telemetry.records import MAX_RECORDS
from analytics.telemetry.signals import LOGS, METRICS, TRACES, Signal
from tests.analytics.telemetry.sending import log, logs, span, traces

SIGNALS: tuple[Signal[Any], ...] = (TRACES, LOGS, METRICS)

texts = st.text(st.characters(codec="utf-8"), max_size=8)
numbers = st.integers(-(2**63), 2**63 - 1)
times = st.integers(0, 2**64 - 1)
scalars = st.one_of(
    st.just(AnyValue()),
    texts.map(lambda value: AnyValue(string_value=value)),
    st.booleans().map(lambda value: AnyValue(bool_value=value)),
    numbers.map(lambda value: AnyValue(int_value=value)),
    # JSON has only one NaN.
    st.one_of(st.floats(allow_nan=False), st.just(float("nan"))).map(lambda value: AnyValue(double_value=value)),
    st.binary(max_size=4).map(lambda value: AnyValue(bytes_value=value)),
)


def pairs_of(values: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[list[KeyValue]]:
    return st.lists(st.builds(KeyValue, key=texts, value=values), max_size=3)


values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: AnyValue(array_value=ArrayValue(values=items))),
        pairs_of(inner).map(lambda items: AnyValue(kvlist_value=KeyValueList(values=items))),
    ),
    max_leaves=5,
)
pairs = pairs_of(values)
# The ids have any length, and often the right one.
trace_ids = st.one_of(st.binary(min_size=16, max_size=16), st.binary(max_size=17))
span_ids = st.one_of(st.binary(min_size=8, max_size=8), st.binary(max_size=9))
spans = st.builds(
    Span,
    trace_id=trace_ids,
    span_id=span_ids,
    parent_span_id=span_ids,
    trace_state=texts,
    name=texts,
    kind=st.integers(0, 9),
    start_time_unix_nano=times,
    end_time_unix_nano=times,
    attributes=pairs,
    events=st.lists(st.builds(Span.Event, time_unix_nano=times, name=texts, attributes=pairs), max_size=2),
    links=st.lists(st.builds(Span.Link, trace_id=trace_ids, span_id=span_ids, attributes=pairs), max_size=2),
    status=st.builds(Status, code=st.integers(0, 4), message=texts),
    flags=st.integers(0, 2**32 - 1),
)
log_records = st.builds(
    LogRecord,
    time_unix_nano=times,
    observed_time_unix_nano=times,
    severity_number=st.integers(0, 30),
    severity_text=texts,
    body=values,
    attributes=pairs,
    flags=st.integers(0, 2**32 - 1),
    trace_id=trace_ids,
    span_id=span_ids,
    event_name=texts,
)
resources = st.builds(Resource, attributes=pairs)
scopes = st.builds(InstrumentationScope, name=texts, version=texts, attributes=pairs)
trace_exports = st.builds(
    ExportTraceServiceRequest,
    resource_spans=st.lists(
        st.builds(
            ResourceSpans,
            resource=resources,
            schema_url=texts,
            scope_spans=st.lists(
                st.builds(ScopeSpans, scope=scopes, schema_url=texts, spans=st.lists(spans, max_size=3)), max_size=2
            ),
        ),
        max_size=2,
    ),
)
log_exports = st.builds(
    ExportLogsServiceRequest,
    resource_logs=st.lists(
        st.builds(
            ResourceLogs,
            resource=resources,
            schema_url=texts,
            scope_logs=st.lists(
                st.builds(ScopeLogs, scope=scopes, schema_url=texts, log_records=st.lists(log_records, max_size=3)),
                max_size=2,
            ),
        ),
        max_size=2,
    ),
)


def otlp_json(message: Message) -> bytes:
    """Returns protobuf's JSON with the two changes of OTLP: ids in hexadecimal, enums as numbers."""
    document = MessageToDict(message, use_integers_for_enums=True)
    _hex_ids(document)
    return json.dumps(document).encode()


def _hex_ids(node: Any) -> None:
    if isinstance(node, list):
        for item in node:
            _hex_ids(item)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name in ("traceId", "spanId", "parentSpanId"):
                node[name] = base64.b64decode(value).hex().upper()
            else:
                _hex_ids(value)


def assert_alike(signal: Signal[Any], message: Message) -> None:
    from_protobuf = read_export(signal, Encoding.PROTOBUF, message.SerializeToString())
    from_json = read_export(signal, Encoding.JSON, otlp_json(message))

    assert from_json == from_protobuf


@given(trace_exports)
def test_traces__both_forms__same_rows_and_same_rejections(export: ExportTraceServiceRequest) -> None:
    assert_alike(TRACES, export)


@given(log_exports)
def test_logs__both_forms__same_rows_and_same_rejections(export: ExportLogsServiceRequest) -> None:
    assert_alike(LOGS, export)


@given(trace_exports)
def test_traces__every_record__a_row_or_a_rejection(export: ExportTraceServiceRequest) -> None:
    sent = sum(len(scope.spans) for group in export.resource_spans for scope in group.scope_spans)

    found = read_export(TRACES, Encoding.PROTOBUF, export.SerializeToString())

    assert len(found.rows) + found.rejected == sent
    assert bool(found.message) == bool(found.rejected)
    assert len({row[0] for row in found.rows}) == len(found.rows)


@given(st.one_of(st.binary(max_size=200), trace_exports.map(lambda export: export.SerializeToString())), st.data())
def test_protobuf__any_bytes__rows_or_a_clear_refusal(content: bytes, data: st.DataObject) -> None:
    if content:
        place = data.draw(st.integers(0, len(content) - 1))
        content = content[:place] + data.draw(st.binary(max_size=3)) + content[place + 1 :]
    for signal in SIGNALS:
        try:
            read_export(signal, Encoding.PROTOBUF, content)
        except (MalformedExportError, LargeExportError) as error:
            assert error.message


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["resourceSpans", "scopeSpans", "spans", "resource", "scope", "attributes", "key", "value", "traceId",
                 "spanId", "name", "kind", "status", "links", "events", "startTimeUnixNano", "stringValue", "intValue",
                 "arrayValue", "values", "kvlistValue", "schemaUrl"]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=20,
)  # fmt: skip


@given(json_values)
@example({"resourceSpans": [{"scopeSpans": [{"spans": [{"links": [{"traceId": 5}]}]}]}]})
@example({"resourceSpans": [{"scopeSpans": [{"spans": [{"status": []}]}]}]})
@example({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "\ud800"}]}]}]})
def test_json__any_document__rows_or_a_clear_refusal(document: Any) -> None:
    for signal in SIGNALS:
        try:
            found = read_export(signal, Encoding.JSON, json.dumps(document).encode())
        except MalformedExportError as error:
            assert error.message
        else:
            for row in found.rows:
                str(row).encode()


@given(trace_exports)
def test_wire__valid_text__changes_nothing_of_a_valid_message(export: ExportTraceServiceRequest) -> None:
    content = export.SerializeToString()

    repaired = wire.with_valid_text(memoryview(content), ExportTraceServiceRequest.DESCRIPTOR)

    assert ExportTraceServiceRequest.FromString(repaired) == export


def test_json__surrogates_and_bytes_that_are_no_text__replaced() -> None:
    document = {
        "resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": 5, "body": {"stringValue": "BODY"}}]}]}]
    }
    content = json.dumps(document).encode()
    body = LOGS.columns.index("Body")

    half = read_export(LOGS, Encoding.JSON, content.replace(b"BODY", b"a\\ud800b"))
    pair = read_export(LOGS, Encoding.JSON, content.replace(b"BODY", b"\\ud83d\\ude00"))
    broken = read_export(LOGS, Encoding.JSON, content.replace(b"BODY", b"a\xffb"))
    low = read_export(LOGS, Encoding.JSON, content.replace(b"BODY", b"a\\udc00b"))

    assert [one.rows[0][body] for one in (half, low, pair, broken)] == ["a?b", "a?b", "\U0001f600", "a\ufffdb"]


def test_protobuf__text_that_is_no_utf8__replaced_in_place() -> None:
    content = traces(span(1, {"key": "VALUE"}, name="NAME-1")).SerializeToString()

    found = read_export(
        TRACES, Encoding.PROTOBUF, content.replace(b"NAME-1", b"N\xff\xfeE-1").replace(b"VALUE", b"V\x80LUE")
    )

    row = dict(zip(TRACES.columns, found.rows[0], strict=True))
    assert (row["SpanName"], row["SpanAttributes"]) == ("N\ufffd\ufffdE-1", {"key": "V\ufffdLUE"})


def test_records__equal_ones_of_one_export__distinguished_and_the_same_when_sent_again() -> None:
    content = logs(log(1), log(1), log(2)).SerializeToString()

    first, again = (read_export(LOGS, Encoding.PROTOBUF, content) for _ in range(2))

    ids = [row[0] for row in first.rows]
    assert len(set(ids)) == 3
    assert [row[0] for row in again.rows] == ids


def test_records__of_another_resource__distinguished() -> None:
    one, other = (
        read_export(LOGS, Encoding.PROTOBUF, logs(log(1), service=name).SerializeToString()) for name in ("a", "b")
    )

    assert one.rows[0][0] != other.rows[0][0]


@pytest.mark.parametrize("inner", [b"\x0a\x00", b"\x12\x00"])
def test_protobuf__millions_of_empty_groups__refused_or_read_in_bounded_time(inner: bytes) -> None:
    """A small compressed body can hold very many values; none of them may become an object that stays."""
    scope = inner * 60_000
    group = b"\x12" + _length(scope) + scope
    content = b"\x0a" + _length(group) + group

    if inner == b"\x12\x00":
        with pytest.raises(LargeExportError, match=str(MAX_RECORDS)):
            read_export(TRACES, Encoding.PROTOBUF, content)
    else:
        assert read_export(TRACES, Encoding.PROTOBUF, content).rows == []


def test_value__nested_deeper_than_protobuf_reads__rejected_alone() -> None:
    deep = b""
    for _ in range(200):
        inner = b"\x0a" + _length(deep) + deep  # This is the field `values` of an ArrayValue.
        deep = b"\x2a" + _length(inner) + inner  # This is the field `array_value` of an AnyValue.
    attribute = b"\x0a\x01k\x12" + _length(deep) + deep
    good = span(1).SerializeToString()
    bad = good + b"\x4a" + _length(attribute) + attribute
    scope = b"".join(b"\x12" + _length(one) + one for one in (bad, good))
    group = b"\x12" + _length(scope) + scope

    found = read_export(TRACES, Encoding.PROTOBUF, b"\x0a" + _length(group) + group)

    assert (len(found.rows), found.rejected) == (1, 1)


def _length(content: bytes) -> bytes:
    size, encoded = len(content), bytearray()
    while size > 0x7F:
        encoded.append(size & 0x7F | 0x80)
        size >>= 7
    encoded.append(size)
    return bytes(encoded)
