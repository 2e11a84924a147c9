from __future__ import annotations

import base64
import gzip
import json
import zlib
from datetime import date, timedelta
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # it comes without types
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.errors import AnalyticsUnavailableError
from core.models import Project
from tests.analytics.telemetry.sending import (
    JSON,
    PROTOBUF,
    START,
    Sender,
    decoded,
    log,
    logs,
    span,
    telemetry_of,
    traces,
)
from tests.factories.core import make_key, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("telemetry")]


_COLUMNS = (
    "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = {table:String}"
    " AND default_kind NOT IN ('MATERIALIZED', 'ALIAS')"
)


def rows(table: str) -> int:
    [(count,)] = client.execute(f"SELECT count() FROM {table} FINAL")  # noqa: S608 - a name of this file
    return int(count)


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


BAD_SPANS: dict[str, dict[str, Any]] = {
    "trace_id must have 16 bytes": {"trace_id": b"\x01" * 8},
    "trace_id is all zeros": {"trace_id": bytes(16)},
    "span_id must have 8 bytes": {"span_id": b""},
    "parent_span_id must have 8 bytes": {"parent_span_id": b"\x01" * 9},
    "start_time_unix_nano is missing": {"start_time_unix_nano": 0},
    "start_time_unix_nano is beyond the year 2262": {"start_time_unix_nano": 2**64 - 1},
}


@pytest.mark.parametrize("reason", BAD_SPANS)
def test_traces__bad_span__counted_and_the_rest_kept(sender: Sender, reason: str) -> None:
    bad = BAD_SPANS[reason]

    answer = sender.traces(span(1), span(2, **bad), span(3))

    partial = decoded(answer, ExportTraceServiceResponse).partial_success
    assert (answer.status_code, partial.rejected_spans) == (200, 1)
    assert reason in partial.error_message
    assert rows("otel_traces") == 2


def test_logs__bad_record__counted_and_the_rest_kept(sender: Sender) -> None:
    answer = sender.logs(
        log(1, time_unix_nano=0), log(2, trace_id=b"x"), log(3, time_unix_nano=0, observed_time_unix_nano=5)
    )

    partial = decoded(answer, ExportLogsServiceResponse).partial_success
    assert partial.rejected_log_records == 2
    assert rows("otel_logs") == 1


@pytest.mark.parametrize("number", range(1, 4))
def test_traces__broken_bytes_in_one_span__counted_and_the_rest_kept(sender: Sender, number: int) -> None:
    content = traces(span(1), span(2, name="BREAK-ME"), span(3)).SerializeToString()
    # The bytes are text that is not UTF-8, a field that ends beyond the span, and an unknown wire type.
    broken = {
        1: content.replace(b"BREAK-ME", b"BRE\xff\xfe-ME"),
        2: content.replace(b"\x2a\x08BREAK-ME", b"\x2a\x7fBREAK-ME"),
        3: content.replace(b"\x2a\x08BREAK-ME", b"\x2f\x08BREAK-ME"),
    }[number]
    assert broken != content

    answer = sender.post("traces", broken)

    assert answer.status_code == 200
    expected = 0 if number == 1 else 1
    assert decoded(answer, ExportTraceServiceResponse).partial_success.rejected_spans == expected
    assert rows("otel_traces") == 3 - expected


def test_json__bad_record__counted_and_the_rest_kept(sender: Sender) -> None:
    good = {"traceId": "01" * 16, "spanId": "02" * 8, "startTimeUnixNano": "5"}
    bad = [
        7,
        None,
        {**good, "traceId": "zz" * 16},
        {**good, "spanId": 12},
        {**good, "kind": {}},
        {**good, "attributes": [{"key": "a", "value": {"intValue": str(2**63)}}]},
        {**good, "startTimeUnixNano": "-1"},
    ]

    answer = sender.json("traces", {"resourceSpans": [{"scopeSpans": [{"spans": [good, *bad]}]}]})

    partial = json.loads(answer.content)["partialSuccess"]
    assert partial["rejectedSpans"] == str(len(bad))
    assert partial["errorMessage"]
    assert rows("otel_traces") == 1


def test_traces__export_of_logs__every_record_counted_and_explained(sender: Sender) -> None:
    answer = sender.post("traces", logs(log(1), log(2)).SerializeToString())

    partial = decoded(answer, ExportTraceServiceResponse).partial_success
    assert partial.rejected_spans == 2
    assert "Is this an export of traces?" in partial.error_message
    assert rows("otel_traces") == 0


def test_logs__export_of_traces__every_record_counted_and_explained(sender: Sender) -> None:
    answer = sender.post("logs", traces(span(1), span(2)).SerializeToString())

    partial = decoded(answer, ExportLogsServiceResponse).partial_success
    assert partial.rejected_log_records == 2
    assert rows("otel_logs") == 0


def test_json__export_of_another_signal__400(sender: Sender) -> None:
    answer = sender.json("traces", MessageToDict(logs(log(1))))

    assert answer.status_code == 400
    assert json.loads(answer.content) == {"code": 3, "message": "resourceLogs: belongs to /v1/logs."}


def test_metrics__answered_with_the_number_that_was_not_stored(sender: Sender) -> None:
    metric = Metric(name="m", gauge=Gauge(data_points=[NumberDataPoint(as_int=1), NumberDataPoint(as_int=2)]))
    export = ExportMetricsServiceRequest(
        resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=[metric])])]
    )

    answer = sender.post("metrics", export.SerializeToString())

    assert answer.status_code == 200
    assert decoded(answer, ExportMetricsServiceResponse).partial_success.rejected_data_points == 2
    as_json = sender.json("metrics", MessageToDict(export))
    assert json.loads(as_json.content)["partialSuccess"]["rejectedDataPoints"] == "2"


@pytest.mark.parametrize("content", [b"\x0a\xff", b"\xff\xff\xff", b"hello", b"\x0a\x02\x12\x09", b"{}"])
def test_protobuf__not_an_export__400_status_in_protobuf(sender: Sender, content: bytes) -> None:
    answer = sender.post("traces", content)

    assert answer.status_code == 400
    assert decoded(answer, Status).code == 3
    assert decoded(answer, Status).message


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"7",
        b"{",
        b'{"resourceSpans": {}}',
        b'{"resourceSpans": [1]}',
        b"[" * 100_000,
        b'{"resourceSpans": [{"resource": 3}]}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": "x"}]}]}',
    ],
)
def test_json__not_an_export__400_status_in_json(sender: Sender, content: bytes) -> None:
    answer = sender.post("traces", content, JSON)

    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == JSON
    assert json.loads(answer.content)["code"] == 3


@pytest.mark.parametrize("sent", [gzip.compress(b"x" * 100)[:-12], b"no gzip", gzip.compress(b"") + b"junk"])
def test_gzip__broken__400(sender: Sender, sent: bytes) -> None:
    assert sender.post("traces", sent, Content_Encoding="gzip").status_code == 400


def test_body__beyond_the_limit__413_before_and_after_inflation(sender: Sender, settings: Settings) -> None:
    settings.OTLP_BODY_BYTES = 10_000
    bomb = gzip.compress(bytes(50_000_000))

    plain = sender.post("traces", bytes(10_001))
    inflated = sender.post("traces", bomb[:9_000], Content_Encoding="gzip")
    assert sender.post("traces", traces(span(1, name="x" * 9_000)).SerializeToString()).status_code == 200

    assert [plain.status_code, inflated.status_code] == [413, 413]
    assert decoded(inflated, Status).code == 8


def test_body__too_many_records__413_and_nothing_stored(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analytics.telemetry.records.MAX_RECORDS", 3)

    answer = sender.traces(*(span(number) for number in range(1, 5)))

    assert answer.status_code == 413
    assert rows("otel_traces") == 0


def test_body__small_and_large_in_the_store__413_and_nothing_stored(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row has the attributes of its resource."""
    monkeypatch.setattr("analytics.telemetry.exports.MAX_STORED_BYTES", 100_000)

    answer = sender.post("traces", traces(*(span(n) for n in range(1, 100)), service="x" * 2_000).SerializeToString())

    assert answer.status_code == 413
    assert rows("otel_traces") == 0


def test_json__record_of_more_than_memory_is_for__counted_alone(sender: Sender) -> None:
    good = b'{"traceId": "01010101010101010101010101010101", "spanId": "0202020202020202", "startTimeUnixNano": 5}'
    huge = b'{"x": [' + b"[]," * 2_900_000 + b"[]]}"

    answer = sender.post("traces", b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b,%b]}]}]}' % (huge, good), JSON)

    assert json.loads(answer.content)["partialSuccess"]["rejectedSpans"] == "1"
    assert rows("otel_traces") == 1


@pytest.mark.parametrize("form", [PROTOBUF, JSON])
def test_resource__larger_than_a_record_may_be__413(sender: Sender, form: str) -> None:
    export = traces(span(1), service="x" * 9_000_000)
    content = export.SerializeToString() if form == PROTOBUF else json.dumps(MessageToDict(export)).encode()

    assert sender.post("traces", content, form).status_code == 413


def test_record__too_large_or_too_many_attributes__counted(sender: Sender) -> None:
    large = span(1, name="x" * 4_200_000)
    many = span(2, {str(number): "" for number in range(4097)})

    answer = sender.traces(large, many, span(3))

    assert decoded(answer, ExportTraceServiceResponse).partial_success.rejected_spans == 2


@pytest.mark.parametrize("content_type", ["text/plain", "application/grpc", "multipart/form-data", ""])
def test_type__unknown__415(sender: Sender, content_type: str) -> None:
    answer = sender.post("traces", b"x", content_type)

    assert answer.status_code == 415
    assert json.loads(answer.content)["message"]


def test_type__with_parameters__understood(sender: Sender) -> None:
    answer = sender.post("traces", b"{}", "application/json; charset=utf-8")

    assert answer.status_code == 200


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip"])
def test_encoding__unknown__415(sender: Sender, coding: str) -> None:
    assert sender.post("traces", b"x", Content_Encoding=coding).status_code == 415


def test_key__missing_or_wrong__401_with_challenge(sender: Sender, project: Project) -> None:
    for given in ("", "Bearer", "Bearer svc_wrong", "Basic eHg6eXk="):
        answer = sender.post("traces", b"", Authorization=given)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert decoded(answer, Status).code == 16


def test_project_header__optional_and_has_to_match(sender: Sender, project: Project) -> None:
    same = sender.post("traces", b"", X_Project_Id=str(project.pk))
    other = sender.post("traces", b"", X_Project_Id=str(make_project().pk))
    unreadable = sender.post("traces", b"", X_Project_Id="x")

    assert [same.status_code, other.status_code, unreadable.status_code] == [200, 401, 401]


@pytest.mark.parametrize("scope", ["gateway", "manage"])
def test_key__either_scope__taken(project: Project, scope: str) -> None:
    _, key = make_key(project, scopes=[scope])

    assert Sender(key).traces(span(1)).status_code == 200


@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_method__other_than_post__405(sender: Sender, method: str) -> None:
    answer = getattr(sender._client, method)("/api/otlp/v1/traces", headers={"Authorization": f"Bearer {sender.key}"})

    assert answer.status_code == 405
    assert answer.headers["Allow"] == "POST"


def test_store__away__503_to_be_sent_again(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise AnalyticsUnavailableError("The analytics store does not answer.")

    monkeypatch.setattr(client, "insert", refuse)

    answer = sender.traces(span(1))

    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert decoded(answer, Status).code == 14


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


def test_traces__types__answered_alike(sender: Sender) -> None:
    """Rejected records are counted alike in protobuf and JSON."""
    export = traces(span(1), span(2, span_id=b"x"))
    document = MessageToDict(export)
    for written in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId"):
            written[name] = base64.b64decode(written[name]).hex()

    protobuf = decoded(sender.post("traces", export.SerializeToString(), PROTOBUF), ExportTraceServiceResponse)
    as_json = json.loads(sender.json("traces", document).content)["partialSuccess"]

    assert as_json == {"rejectedSpans": "1", "errorMessage": protobuf.partial_success.error_message}
    assert rows("otel_traces") == 1
