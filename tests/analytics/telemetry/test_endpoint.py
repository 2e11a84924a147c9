from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.proto.trace.v1.trace_pb2 import Status as SpanStatus
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.queries.telemetry import _SESSION_SPANS
from core.models import Project
from tests.analytics.telemetry.sending import SESSION, START, Sender, log, span, telemetry_of
from tests.factories.core import make_key

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("telemetry")]


def test_telemetry__span_and_log__exactly_the_specified_shapes(
    sender: Sender, api: APIClient, project: Project
) -> None:
    status = SpanStatus(code=SpanStatus.STATUS_CODE_ERROR, message="boom")
    sender.traces(span(1, parent_span_id=b"\x07" * 8, kind=Span.SPAN_KIND_PRODUCER, status=status))
    sender.logs(log(2, trace_id=b"\x01" * 16, span_id=b"\x02" * 8))

    assert telemetry_of(api, project.pk) == (
        [
            {
                "trace_id": "01" * 16,
                "span_id": "0000000000000001",
                "parent_span_id": "07" * 8,
                "span_name": "span 1",
                "span_kind": "Producer",
                "service_name": "shop",
                "timestamp": "2026-11-21T10:47:05.924675527Z",
                "duration_ns": 1_000,
                "status_code": "Error",
                "status_message": "boom",
                "attributes": {"gen_ai.session_id": SESSION},
            }
        ],
        [
            {
                "timestamp": "2026-11-21T10:47:05.924675528Z",
                "trace_id": "01" * 16,
                "span_id": "02" * 8,
                "severity_text": "INFO",
                "service_name": "shop",
                "body": "line 2",
                "attributes": {"gen_ai.session_id": SESSION},
            }
        ],
    )


def test_telemetry__least_that_can_be_sent__empty_texts(sender: Sender, api: APIClient, project: Project) -> None:
    sender.traces(span(1, parent_span_id=bytes(8), name="", kind=Span.SPAN_KIND_UNSPECIFIED, end_time_unix_nano=0))
    sender.logs(log(1, severity_text="", severity_number=17, body=None, trace_id=bytes(16)))

    (found,), (line,) = telemetry_of(api, project.pk)
    assert (found["parent_span_id"], found["span_name"], found["duration_ns"]) == ("", "", 0)
    assert (found["span_kind"], found["status_code"], found["status_message"]) == ("Unspecified", "Unset", "")
    assert (line["trace_id"], line["span_id"], line["body"], line["severity_text"]) == ("", "", "", "ERROR")


def test_telemetry__either_attribute__found_under_both(sender: Sender, api: APIClient, project: Project) -> None:
    sender.traces(
        span(1, {"gen_ai.session_id": "a"}),
        span(2, {"llm.session_id": "a"}),
        span(3, {"gen_ai.session_id": "b", "llm.session_id": "a"}),
        span(4, {"gen_ai.session_id": "", "llm.session_id": "a"}),
        span(5, {"gen_ai.session_id": "a", "llm.session_id": "a"}),
        span(6, {"gen_ai.session_id": "b"}),
        span(7, {}),
    )

    def numbers(session: str) -> list[str]:
        return [found["span_name"].split()[1] for found in telemetry_of(api, project.pk, session)[0]]

    assert numbers("a") == ["1", "2", "3", "4", "5"]
    assert numbers("b") == ["3", "6"]


def test_telemetry__attribute_of_the_resource_only__not_of_the_session(
    sender: Sender, api: APIClient, project: Project
) -> None:
    document = {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "gen_ai.session_id", "value": {"stringValue": SESSION}}]},
                "scopeSpans": [{"spans": [{"traceId": "01" * 16, "spanId": "02" * 8, "startTimeUnixNano": "5"}]}],
            }
        ]
    }
    assert sender.json("traces", document).status_code == 200

    assert telemetry_of(api, project.pk) == ([], [])


def test_telemetry__order__time_then_span_id(sender: Sender, api: APIClient, project: Project) -> None:
    sender.traces(
        span(3, start_time_unix_nano=START),
        span(1, start_time_unix_nano=START + 1),
        span(4, start_time_unix_nano=START - 1),
        span(2, start_time_unix_nano=START),
    )

    spans, _ = telemetry_of(api, project.pk)
    assert [found["span_id"][-1] for found in spans] == ["4", "2", "3", "1"]


def test_telemetry__more_than_500__the_first_500_of_each(sender: Sender, api: APIClient, project: Project) -> None:
    sender.traces(*(span(number) for number in range(601, 0, -1)))
    sender.logs(*(log(number) for number in range(601, 0, -1)))

    spans, logs = telemetry_of(api, project.pk)

    assert [found["span_name"] for found in spans] == [f"span {number}" for number in range(1, 501)]
    assert [line["body"] for line in logs] == [f"line {number}" for number in range(1, 501)]


def test_telemetry__written_by_older_exporters__spelt_as_today(api: APIClient, project: Project) -> None:
    columns = ("ProjectId", "Timestamp", "TraceId", "SpanId", "SpanKind", "StatusCode", "SpanAttributes")
    attributes = {"gen_ai.session_id": SESSION}
    written = [
        ("SPAN_KIND_SERVER", "STATUS_CODE_ERROR"), ("SPAN_KIND_CLIENT", "STATUS_CODE_OK"),
        ("Internal", "Unset"), ("", ""), ("SPAN_KIND_UNSPECIFIED", "STATUS_CODE_UNSET"), ("Odd", "Odd"),
    ]  # fmt: skip
    rows = [
        (project.pk, START + number, "t", "s", kind, status, attributes)
        for number, (kind, status) in enumerate(written)
    ]
    client.insert("otel_traces", columns, rows, token=str(uuid4()))

    spans, _ = telemetry_of(api, project.pk)

    assert [(found["span_kind"], found["status_code"]) for found in spans] == [
        ("Server", "Error"), ("Client", "Ok"), ("Internal", "Unset"), ("Unspecified", "Unset"),
        ("Unspecified", "Unset"), ("Odd", "Odd"),
    ]  # fmt: skip


def test_telemetry__collector_writes_itself__project_from_the_resource(api: APIClient, project: Project) -> None:
    """A collector inserts with its own list of columns."""
    columns = (
        "Timestamp", "TraceId", "SpanId", "ParentSpanId", "TraceState", "SpanName", "SpanKind", "ServiceName",
        "ResourceAttributes", "ScopeName", "ScopeVersion", "SpanAttributes", "Duration", "StatusCode", "StatusMessage",
        "Events.Timestamp", "Events.Name", "Events.Attributes", "Links.TraceId", "Links.SpanId", "Links.TraceState",
        "Links.Attributes",
    )  # fmt: skip
    resource = {"prompt_gateway.project_id": str(project.pk)}
    row: tuple[Any, ...] = (
        START, "01" * 16, "02" * 8, "", "", "GET", "Server", "web", resource, "", "", {"llm.session_id": SESSION}, 5,
        "Unset", "", [START], ["e"], [{"k": "v"}], [], [], [], [],
    )  # fmt: skip
    nobody: tuple[Any, ...] = (*row[:8], {}, *row[9:])
    client.insert("otel_traces", columns, [row, nobody], token=str(uuid4()))
    log_columns = (
        "Timestamp", "TraceId", "SpanId", "TraceFlags", "SeverityText", "SeverityNumber", "ServiceName", "Body",
        "ResourceSchemaUrl", "ResourceAttributes", "ScopeSchemaUrl", "ScopeName", "ScopeVersion", "ScopeAttributes",
        "LogAttributes",
    )  # fmt: skip
    line: tuple[Any, ...] = (
        START,
        "",
        "",
        0,
        "INFO",
        9,
        "web",
        "x",
        "",
        resource,
        "",
        "",
        "",
        {},
        {"gen_ai.session_id": SESSION},
    )
    client.insert("otel_logs", log_columns, [line], token=str(uuid4()))

    spans, logs = telemetry_of(api, project.pk)
    assert [found["span_name"] for found in spans] == ["GET"]
    assert [found["body"] for found in logs] == ["x"]


def test_telemetry__bytes_that_are_no_text__replaced(api: APIClient, project: Project) -> None:
    """Our endpoint replaces bytes that are not UTF-8; a collector that writes itself may not."""
    odd, attributes = b"a\xffb", {"gen_ai.session_id": SESSION, b"\xfe": b"v\x80"}
    columns = ("ProjectId", "Timestamp", "TraceId", "SpanId", "SpanName", "StatusMessage", "SpanAttributes")
    client.insert("otel_traces", columns, [(project.pk, START, odd, "s", odd, odd, attributes)], token=str(uuid4()))
    client.insert(
        "otel_logs", ("ProjectId", "Timestamp", "Body", "LogAttributes"), [(project.pk, START, odd, attributes)],
        token=str(uuid4()),
    )  # fmt: skip

    (found,), (line,) = telemetry_of(api, project.pk)

    assert (found["trace_id"], found["span_name"], line["body"]) == ("a\ufffdb",) * 3
    assert found["attributes"] == line["attributes"] == {"gen_ai.session_id": SESSION, "\ufffd": "v\ufffd"}


def test_telemetry__unknown_session__empty(api: APIClient, project: Project) -> None:
    assert telemetry_of(api, project.pk, "nobody") == ([], [])


@pytest.mark.parametrize(
    "session",
    ["%", "_", "s'1", 's"1', "a\\b", "a/b/c", "ü 用户", "x" * 3000, "a\tb", "{x:String}", "a%00b", "telemetry"],
)
def test_telemetry__any_session_id__exactly_that_one(
    sender: Sender, api: APIClient, project: Project, session: str
) -> None:
    meant = unquote(session)
    sender.traces(span(1, {"gen_ai.session_id": meant}), span(2, {"gen_ai.session_id": "s-other"}))

    spans, _ = telemetry_of(api, project.pk, quote(meant, safe="/"))

    assert [found["span_name"] for found in spans] == ["span 1"]


def test_telemetry__access__as_the_management_api(project: Project, api: APIClient) -> None:
    path = f"/api/projects/{project.pk}/llm/sessions/s/telemetry"
    _, gateway_key = make_key(project, scopes=["gateway"])
    nobody, without_scope = APIClient(), APIClient()
    without_scope.credentials(HTTP_AUTHORIZATION=f"Bearer {gateway_key}", HTTP_X_PROJECT_ID=str(project.pk))

    assert nobody.get(path).status_code == 401
    assert without_scope.get(path).status_code == 403
    assert api.get("/api/projects/x/llm/sessions/s/telemetry").status_code == 400
    assert api.post(path).status_code == 405


@pytest.mark.parametrize("error", [AnalyticsUnavailableError("away"), AnalyticsLimitError("too much")])
def test_telemetry__store_away_or_at_its_limit__503(
    api: APIClient, project: Project, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(client, "query", fail)

    answer = api.get(f"/api/projects/{project.pk}/llm/sessions/s/telemetry")

    assert answer.status_code == 503
    assert answer.json()["error"]["type"] == "service_unavailable_error"


def test_telemetry__of_a_session__found_by_the_keys_of_the_table(sender: Sender, project: Project) -> None:
    sender.traces(*(span(number, {"gen_ai.session_id": f"s-{number}"}) for number in range(1, 50)))

    query = _SESSION_SPANS.replace("{session:String}", "'s-7'").replace("{limit:UInt32}", "500")
    plan = client.execute(f"SELECT * FROM (EXPLAIN indexes = 1 {query})", {"project": project.pk})  # noqa: S608 - above

    explained = "\n".join(str(line) for (line,) in plan)
    for part in ("DropDate", "toStartOfFiveMinutes(Timestamp)", "ServiceName", "RecordId"):
        assert part in explained


def test_telemetry__sent_again_on_another_day__once(
    sender: Sender, api: APIClient, project: Project, settings: Settings
) -> None:
    """The store merges equal records only where they are dropped on the same day."""
    for days in (30, 31):
        settings.TELEMETRY_RETENTION_DAYS = days
        sender.traces(span(1), span(2))
        sender.logs(log(1))

    spans, logs = telemetry_of(api, project.pk)

    assert (len(spans), len(logs)) == (2, 1)


def test_insert__sent_again_under_its_token__keys_of_sessions_once_too(project: Project) -> None:
    """An insert is sent again under its token, as the shipper does; the keys of sessions are stored once as well."""
    columns = ("ProjectId", "Timestamp", "TraceId", "SpanId", "SpanAttributes")
    row = (project.pk, START, "t", "s", {"gen_ai.session_id": SESSION})
    for _ in range(3):
        client.insert("otel_traces", columns, [row], token="one")

    counts = [client.execute(f"SELECT count() FROM {table}") for table in ("otel_traces", "otel_session_spans")]  # noqa: S608 - above
    assert counts == [[(1,)], [(1,)]]
