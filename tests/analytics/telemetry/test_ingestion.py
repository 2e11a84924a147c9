"""Exports of spans and logs are stored once, with their values and for the set time."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from datetime import date, timedelta

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.clickhouse import client
from core.models import Project
from tests.analytics.telemetry.sending import JSON, START, Sender, decoded, log, rows, span, telemetry_of, traces
from tests.factories.core import make_key, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("telemetry")]

_COLUMNS = (
    "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = {table:String}"
    " AND default_kind NOT IN ('MATERIALIZED', 'ALIAS')"
)


@pytest.mark.parametrize("path", ["traces", "traces/"])
def test_traces__protobuf__stored_and_answered_in_protobuf(sender: Sender, path: str) -> None:
    answer = sender.post(path, traces(span(1), span(2)).SerializeToString())

    assert answer.status_code == 200
    assert not decoded(answer, ExportTraceServiceResponse).HasField("partial_success")
    assert rows("otel_traces") == 2


def test_logs__protobuf__stored_and_answered_in_protobuf(sender: Sender) -> None:
    answer = sender.logs(log(1), log(2))

    assert answer.status_code == 200
    assert not decoded(answer, ExportLogsServiceResponse).HasField("partial_success")
    assert rows("otel_logs") == 2


def test_traces__json_by_hand__stored_and_answered_in_json(sender: Sender, api: APIClient, project: Project) -> None:
    answer = sender.json(
        "traces",
        {
            "resourceSpans": [
                {
                    "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "web"}}]},
                    "unknownField": {"x": 1},
                    "scopeSpans": [
                        {
                            "scope": {"name": "manual"},
                            "spans": [
                                {
                                    "traceId": "5B8EFFF798038103D269B633813FC60C",
                                    "spanId": "eee19b7ec3c1b174",
                                    "parentSpanId": "",
                                    "name": "checkout",
                                    "kind": 2,
                                    "startTimeUnixNano": "1544712660300000001",
                                    "endTimeUnixNano": 1544712661300000001,
                                    "attributes": [
                                        {"key": "llm.session_id", "value": {"stringValue": "j"}},
                                        {"key": "n", "value": {"intValue": "9007199254740993"}},
                                        {"key": "m", "value": {"intValue": 7}},
                                        {"key": "b", "value": {"boolValue": True}},
                                    ],
                                    "status": {"code": 2, "message": "no"},
                                    "something": "new",
                                }
                            ],
                        }
                    ],
                }
            ]
        },
    )

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == JSON
    assert json.loads(answer.content) == {}
    (found,), _ = telemetry_of(api, project.pk, "j")
    assert found == {
        "trace_id": "5b8efff798038103d269b633813fc60c",
        "span_id": "eee19b7ec3c1b174",
        "parent_span_id": "",
        "span_name": "checkout",
        "span_kind": "Server",
        "service_name": "web",
        "timestamp": "2018-12-13T14:51:00.300000001Z",
        "duration_ns": 1_000_000_000,
        "status_code": "Error",
        "status_message": "no",
        "attributes": {"llm.session_id": "j", "n": "9007199254740993", "m": "7", "b": "true"},
    }


@pytest.mark.parametrize("content", [b"", b"{}", b'{"resourceSpans": []}', b'{"resourceSpans": null}'])
def test_traces__empty_json__success(sender: Sender, content: bytes) -> None:
    answer = sender.post("traces", content, JSON)

    assert (answer.status_code, answer.content) == (200, b"{}")


@pytest.mark.parametrize("path", ["traces", "logs", "metrics"])
def test_export__empty_protobuf__success(sender: Sender, path: str) -> None:
    answer = sender.post(path, b"")

    assert (answer.status_code, answer.content) == (200, b"")


def _compressed(coding: str, content: bytes) -> bytes:
    if coding == "gzip":
        return gzip.compress(content)
    if coding == "two members":
        return gzip.compress(content[:10]) + gzip.compress(content[10:])
    if coding == "deflate":
        return zlib.compress(content)
    bare = zlib.compressobj(wbits=-15)
    return bare.compress(content) + bare.flush()


@pytest.mark.parametrize("coding", ["gzip", "two members", "deflate", "bare deflate"])
def test_traces__compressed__stored(sender: Sender, coding: str) -> None:
    name = "deflate" if "deflate" in coding else "GZIP"

    answer = sender.post("traces", _compressed(coding, traces(span(1)).SerializeToString()), Content_Encoding=name)

    assert answer.status_code == 200
    assert rows("otel_traces") == 1


def test_traces__sent_again__once_in_the_table_and_in_the_answer(
    sender: Sender, api: APIClient, project: Project
) -> None:
    content = traces(span(1), span(2)).SerializeToString()
    for _ in range(3):
        assert sender.post("traces", content).status_code == 200
    # The same spans are sent among others, so that no token of an insert can recognize them.
    assert sender.traces(span(1), span(2), span(3)).status_code == 200

    assert rows("otel_traces") == 3
    spans, _ = telemetry_of(api, project.pk)
    assert [found["span_name"] for found in spans] == ["span 1", "span 2", "span 3"]


def test_logs__equal_records_of_one_moment__all_kept_and_once_when_sent_again(
    sender: Sender, api: APIClient, project: Project
) -> None:
    for _ in range(2):
        sender.logs(log(1), log(1), log(1))

    _, found = telemetry_of(api, project.pk)
    assert [line["body"] for line in found] == ["line 1"] * 3


def test_traces__same_body_of_another_project__stays_apart(sender: Sender, api: APIClient, project: Project) -> None:
    other = make_project()
    _, key = make_key(other, scopes=["gateway"])
    for one in (sender, Sender(key)):
        assert one.traces(span(1)).status_code == 200

    assert rows("otel_traces") == 2
    spans, _ = telemetry_of(api, project.pk)
    assert len(spans) == 1


def test_values__every_kind__as_text(sender: Sender, api: APIClient, project: Project) -> None:
    values = {
        "string": AnyValue(string_value="ü\x00"),
        "bool": AnyValue(bool_value=False),
        "int": AnyValue(int_value=-(2**63)),
        "double": AnyValue(double_value=0.1),
        "whole": AnyValue(double_value=3.0),
        "nan": AnyValue(double_value=float("nan")),
        "bytes": AnyValue(bytes_value=b"\xff\x00"),
        "list": AnyValue(
            array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue(string_value="é"), AnyValue()])
        ),
        "map": AnyValue(
            kvlist_value=KeyValueList(
                values=[
                    KeyValue(key="a", value=AnyValue(double_value=1.5)),
                    KeyValue(key="b", value=AnyValue(array_value=ArrayValue(values=[AnyValue(bytes_value=b"x")]))),
                    KeyValue(key="c", value=AnyValue(double_value=float("inf"))),
                ]
            )
        ),
        "none": AnyValue(),
    }
    attributes = [KeyValue(key=key, value=value) for key, value in values.items()]
    attributes.append(KeyValue(key="gen_ai.session_id", value=AnyValue(string_value="s-1")))

    tagged = span(1, {})
    tagged.attributes.extend(attributes)
    sender.traces(tagged)
    sender.logs(log(1, body=values["map"]))

    (found,), (line,) = telemetry_of(api, project.pk)
    assert found["attributes"] == {
        "string": "ü\x00", "bool": "false", "int": "-9223372036854775808", "double": "0.1", "whole": "3", "nan": "NaN",
        "bytes": base64.b64encode(b"\xff\x00").decode(), "list": '[1,"é",null]',
        "map": '{"a":1.5,"b":["eA=="],"c":"Infinity"}', "none": "", "gen_ai.session_id": "s-1",
    }  # fmt: skip
    assert line["body"] == '{"a":1.5,"b":["eA=="],"c":"Infinity"}'


def test_other_session_attributes__only_when_the_operator_names_them(
    sender: Sender, api: APIClient, project: Project, settings: Settings
) -> None:
    attributes = {"gen_ai.conversation.id": "c", "session.id": "d"}
    sender.traces(span(1, attributes))
    assert telemetry_of(api, project.pk, "c") == ([], [])

    settings.OTLP_SESSION_ATTRIBUTES = ["gen_ai.conversation.id", "session.id"]
    sender.traces(span(2, attributes))
    sender.logs(log(2, attributes))

    for session in ("c", "d"):
        (found,), (line,) = telemetry_of(api, project.pk, session)
        assert (found["span_name"], line["body"]) == ("span 2", "line 2")


def test_retention__setting__day_of_arrival_and_so_many_more(sender: Sender, settings: Settings, today: date) -> None:
    settings.TELEMETRY_RETENTION_DAYS = 12
    sender.traces(span(1, start_time_unix_nano=START - 10**18))

    assert client.execute("SELECT DropDate FROM otel_traces") == [(today + timedelta(days=12),)]


def test_retention__day_is_over__rows_gone_with_their_parts_and_no_mutation(sender: Sender) -> None:
    sender.traces(span(1))
    sender.logs(log(1))
    tables = ("otel_traces", "otel_session_spans", "otel_logs", "otel_session_logs")
    for table in tables:
        names = [name for (name,) in client.execute(_COLUMNS, {"table": table})]
        copied = ", ".join("today() - 1" if name == "DropDate" else f"`{name}`" for name in names)
        listed = ", ".join(f"`{name}`" for name in names)
        client.execute(f"INSERT INTO {table} ({listed}) SELECT {copied} FROM {table}")  # noqa: S608 - names of the store
        client.execute(f"OPTIMIZE TABLE {table} FINAL")

    for table in tables:
        expired = f"SELECT count() FROM {table} WHERE DropDate < today()"  # noqa: S608 - as above
        assert (client.execute(expired), rows(table) > 0) == ([(0,)], True)
    assert client.execute("SELECT count() FROM system.mutations WHERE table LIKE 'otel%' AND NOT is_done") == [(0,)]
