"""A broken record is rejected by name, and the others of its export are stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import HttpResponse
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from analytics.clickhouse import client
from analytics.telemetry import wire
from analytics.telemetry.body import Encoding
from analytics.telemetry.exports import read_export
from analytics.telemetry.signals import LOGS, METRICS, TRACES, Signal
from core.models import Project
from tests.analytics.telemetry.sending import JSON, PROTOBUF, START, Sender, decoded, log, span

SIGNALS: dict[str, tuple[Signal[Any], str]] = {"traces": (TRACES, "otel_traces"), "logs": (LOGS, "otel_logs")}
SURROGATE = b"\xed\xa0\x80"

store = pytest.mark.usefixtures("telemetry")


def field(number: int, content: bytes, kind: int = wire.BYTES) -> bytes:
    """Returns a field of a protobuf message; `content` is the value itself unless it is length-delimited."""
    length = bytes((len(content) & 0x7F | 0x80, len(content) >> 7)) if len(content) > 0x7F else bytes((len(content),))
    return bytes((number << 3 | kind,)) + (length if kind == wire.BYTES else b"") + content


def protobuf(*records: bytes, resource: bytes = b"", scope: bytes = b"") -> bytes:
    scoped = field(1, scope) + b"".join(field(2, record) for record in records)
    return field(1, field(1, resource) + field(2, scoped))


def good(signal: str, number: int) -> bytes:
    message: Message = span(number) if signal == "traces" else log(number)
    return message.SerializeToString()


def good_json(signal: str, number: int, **changes: Any) -> dict[str, Any]:
    return {
        "traceId": "01" * 16,
        "spanId": f"{number:016x}",
        "name": f"span {number}",
        "startTimeUnixNano" if signal == "traces" else "timeUnixNano": str(START + number),
        **changes,
    }


def document(signal: str, *records: Any, **around: Any) -> bytes:
    form = SIGNALS[signal][0].form
    group = {**around, form.scopes: [{form.records: list(records)}]}
    return json.dumps({form.resources: [group]}).encode()


def rejected(signal: str, answer: HttpResponse) -> tuple[int, str]:
    """Returns the number of rejected records, and the message of the answer."""
    assert answer.status_code == 200, answer.content
    if answer.headers["Content-Type"] == JSON:
        partial = json.loads(answer.content)["partialSuccess"]
        return int(partial["rejectedSpans" if signal == "traces" else "rejectedLogRecords"]), partial["errorMessage"]
    if signal == "traces":
        of_spans = decoded(answer, ExportTraceServiceResponse).partial_success
        return of_spans.rejected_spans, of_spans.error_message
    of_logs = decoded(answer, ExportLogsServiceResponse).partial_success
    return of_logs.rejected_log_records, of_logs.error_message


def stored(signal: str) -> int:
    [(count,)] = client.execute(f"SELECT count() FROM {SIGNALS[signal][1]} FINAL")  # noqa: S608 - one of two names
    return int(count)


DEEP = "[" * 5_000 + "]" * 5_000
# Each entry has raw bytes in the place of a value, and the fields of a span and of a log record that get them.
RAW_VALUES = {
    "a raw surrogate": (b'"' + SURROGATE + b'"', "status.code", "severityNumber"),
    "an escaped surrogate": (rb'"\ud800"', "status.code", "severityNumber"),
    "bytes that are no text": (b'"\xff\xfe"', "status.code", "severityNumber"),
    "no name of the enum": (b'"SPAN_KIND_SIDEWAYS"', "kind", "severityNumber"),
    "a number beyond 32 bits": (b"99999999999", "kind", "severityNumber"),
    "a fraction": (b"1.5", "kind", "severityNumber"),
    "true": (b"true", "kind", "severityNumber"),
    "an object": (b"{}", "kind", "severityNumber"),
    "deep nesting": (DEEP.encode(), "attributes", "attributes"),
    "a number of 5,000 digits": (b"9" * 5_000, "droppedAttributesCount", "droppedAttributesCount"),
    "infinity": (b"1e999", "flags", "flags"),
}


@store
@pytest.mark.django_db
@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("name", RAW_VALUES)
def test_json__one_broken_value__that_record_rejected_by_name(sender: Sender, signal: str, name: str) -> None:
    value, of_span, of_log = RAW_VALUES[name]
    where = of_span if signal == "traces" else of_log
    broken: dict[str, Any] = {"status": {"code": "HERE"}} if where == "status.code" else {where: "HERE"}
    content = document(
        signal, good_json(signal, 1), good_json(signal, 2, **broken), good_json(signal, 3), good_json(signal, 4)
    ).replace(b'"HERE"', value)

    count, message = rejected(signal, sender.post(signal, content, JSON))

    form = SIGNALS[signal][0].form
    assert count == 1
    assert f"{form.resources}[0].{form.scopes}[0].{form.records}[1]" in message
    assert where in message or name == "a number of 5,000 digits"
    assert stored(signal) == 3


BROKEN_BYTES = {
    # The first field is a span's attributes, the second a log record's body.
    "a submessage that ends too early": field(9, b"\x0a\x7fshort") + field(5, b"\x0a\x7fshort"),
    "a field beyond the record": b"\x2a\x7fx",
    "field number 0": b"\x02\x01x",
    "a wire type that there is not": b"\x2f\x01x",
    "a number without an end": b"\x30" + b"\xff" * 11,
    "nothing but surrogates": SURROGATE * 3,
}


@store
@pytest.mark.django_db
@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("name", BROKEN_BYTES)
def test_protobuf__one_broken_record__that_record_rejected_by_name(sender: Sender, signal: str, name: str) -> None:
    content = protobuf(good(signal, 1), good(signal, 2) + BROKEN_BYTES[name], good(signal, 3))

    count, message = rejected(signal, sender.post(signal, content))

    form = SIGNALS[signal][0].form
    assert count == 1
    assert message == f"1 of them: the record is not readable ({form.resources}[0].{form.scopes}[0].{form.records}[1])"
    assert stored(signal) == 2


@store
@pytest.mark.django_db
@pytest.mark.parametrize("part", ["resource", "scope"])
@pytest.mark.parametrize("signal", SIGNALS)
def test_protobuf__broken_resource_or_scope__its_records_rejected_and_others_stored(
    sender: Sender, signal: str, part: str
) -> None:
    broken = protobuf(good(signal, 1), good(signal, 2), **{part: b"\x0a\x7fshort"})
    content = protobuf(good(signal, 3)) + broken + protobuf(good(signal, 4))

    count, message = rejected(signal, sender.post(signal, content))

    assert count == 2
    assert f"the {part} is not readable ({SIGNALS[signal][0].form.resources}[1]" in message
    assert stored(signal) == 2


@store
@pytest.mark.django_db
@pytest.mark.parametrize("signal", SIGNALS)
def test_protobuf__group_that_cannot_be_taken_apart__counts_as_one_and_others_stored(
    sender: Sender, signal: str
) -> None:
    content = protobuf(good(signal, 1)) + field(1, b"\x12\x7fshort") + protobuf(good(signal, 2))

    assert rejected(signal, sender.post(signal, content))[0] == 1
    assert stored(signal) == 2


@store
@pytest.mark.django_db
@pytest.mark.parametrize("signal", SIGNALS)
def test_json__broken_resource__its_records_rejected_and_others_stored(sender: Sender, signal: str) -> None:
    form = SIGNALS[signal][0].form
    groups = [
        json.loads(document(signal, good_json(signal, 1)))[form.resources][0],
        json.loads(document(signal, good_json(signal, 2), resource={"attributes": 7}))[form.resources][0],
        7,
        {form.scopes: {}},
        {form.scopes: [7, {form.records: "x"}, {form.records: [good_json(signal, 3)]}]},
    ]

    count, message = rejected(signal, sender.json(signal, {form.resources: groups}))

    assert count == 1 + 1 + 1 + 2
    assert f"({form.resources}[1].{form.scopes}[0].{form.records}[0])" in message
    assert stored(signal) == 2


@pytest.mark.django_db
@pytest.mark.parametrize("encoding", [JSON, PROTOBUF])
def test_metrics__one_broken_metric__counted_and_no_failure(sender: Sender, encoding: str) -> None:
    as_json = b'{"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m"}, {"name": "' + SURROGATE + b'", '
    as_json += b'"gauge": {"dataPoints": [{"flags": "' + SURROGATE + b'"}]}}]}]}]}'

    answer = sender.post("metrics", as_json if encoding == JSON else protobuf(b"\x0a\x01m", b"\x2a\x7fshort"), encoding)

    assert answer.status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("content", [field(1, b"\x12\x7fshort"), field(1, field(2, b"\x12\x7fshort")) * 2])
def test_protobuf__nothing_readable__400(sender: Sender, content: bytes) -> None:
    assert sender.post("traces", content).status_code == 400


@st.composite
def mutated(draw: st.DrawFn, content: bytes) -> bytes:
    """Draws the same bytes with some replaced, cut out or added."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 4)))
        content = content[:start] + draw(st.binary(max_size=5)) + content[end:]
    return content


@given(st.data())
@pytest.mark.parametrize("name", [*SIGNALS, "metrics"])
def test_protobuf__one_record_mutated__all_others_stored(name: str, data: st.DataObject) -> None:
    signal = METRICS if name == "metrics" else SIGNALS[name][0]
    number = data.draw(st.integers(1, 6))
    records = [good("logs" if name == "logs" else "traces", index + 1) for index in range(number)]
    place = data.draw(st.integers(0, number - 1))
    broken = data.draw(mutated(records[place]))

    found = read_export(
        signal, Encoding.PROTOBUF, protobuf(*records[:place], broken, *records[place + 1 :], resource=b"")
    )

    if name != "metrics":
        assert number - 1 <= len(found.rows) <= number
        assert len(found.rows) + found.rejected == number


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("\ud800")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
FIELDS = (
    "traceId", "spanId", "parentSpanId", "name", "kind", "status", "links", "events", "attributes", "flags",
    "startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "severityNumber", "severityText", "body", "traceState",
)  # fmt: skip


@given(st.data(), st.sampled_from(FIELDS), json_values, st.booleans())
@pytest.mark.parametrize("name", SIGNALS)
def test_json__one_record_mutated__all_others_stored(
    name: str, data: st.DataObject, changed: str, value: Any, raw: bool
) -> None:
    number = data.draw(st.integers(1, 6))
    place = data.draw(st.integers(0, number - 1))
    records = [good_json(name, index + 1) for index in range(number)]
    records[place][changed] = "HERE"
    content = json.dumps(value).encode()
    if raw:
        # Other languages encode the halves of a surrogate pair as bytes of their own.
        content = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")

    found = read_export(SIGNALS[name][0], Encoding.JSON, document(name, *records).replace(b'"HERE"', content))

    assert number - 1 <= len(found.rows) <= number
    assert len(found.rows) + found.rejected == number


@store
@pytest.mark.django_db
def test_store__extreme_values__stored_beside_the_others(sender: Sender, project: Project) -> None:
    """No value of a field that can be decoded makes the store refuse the rows of an export."""
    most = 2**64 - 1
    extremes: list[Any] = [
        {"endTimeUnixNano": str(most)},
        {"events": [{"timeUnixNano": str(most), "name": "\x00"}]},
        {"kind": -(2**31), "status": {"code": 2**31 - 1}},
        {"name": "", "traceState": "\x00" * 100},
        {"attributes": [{"key": "", "value": {"doubleValue": "NaN"}}, {"key": "a"}]},
        {"links": [{"traceId": "00", "spanId": "ff" * 40}]},
        {"flags": 2**32 - 1},
    ]
    records = [good_json("traces", number + 1, **extreme) for number, extreme in enumerate(extremes)]

    assert sender.post("traces", document("traces", *records), JSON).content == b"{}"
    assert stored("traces") == len(extremes)
