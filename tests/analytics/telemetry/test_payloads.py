"""Payloads as real SDKs write them are stored and read back, with every record."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from rest_framework.test import APIClient

from analytics.clickhouse import client
from core.models import Project
from tests.analytics.telemetry.sending import Sender, telemetry_of
from tests.recordings import shared_file

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("telemetry")]

OWN = Path(__file__).parent / "payloads"
KINDS = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")
STATUSES = ("Unset", "Ok", "Error")


def payloads() -> list[Path]:
    shared = shared_file("otlp")
    return sorted([*OWN.glob("*.json"), *(shared.glob("*.json") if shared is not None else ())])


def plain(value: Any) -> Any:
    """Returns a value of OTLP's JSON as a Python value."""
    content: Any
    kind, content = next(iter(value.items()), ("", None))
    if kind == "arrayValue":
        return [plain(item) for item in content.get("values", ())]
    if kind == "kvlistValue":
        return {pair["key"]: plain(pair["value"]) for pair in content.get("values", ())}
    return int(content) if kind == "intValue" else content


def as_text(value: dict[str, Any]) -> str:
    found = plain(value)
    if isinstance(found, str):
        return found
    if isinstance(found, float):
        return str(int(found)) if found == int(found) else str(found)
    return "" if found is None else json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def texts(attributes: list[dict[str, Any]]) -> dict[str, str]:
    return {pair["key"]: as_text(pair["value"]) for pair in attributes}


def iso(nanoseconds: str | int) -> str:
    seconds, rest = divmod(int(nanoseconds), 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def expected_span(service: str, span: dict[str, Any]) -> dict[str, Any]:
    status = span.get("status", {})
    return {
        "trace_id": span["traceId"].lower(),
        "span_id": span["spanId"].lower(),
        "parent_span_id": span.get("parentSpanId", "").lower(),
        "span_name": span["name"],
        "span_kind": KINDS[span.get("kind", 0)],
        "service_name": service,
        "timestamp": iso(span["startTimeUnixNano"]),
        "duration_ns": int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]),
        "status_code": STATUSES[status.get("code", 0)],
        "status_message": status.get("message", ""),
        "attributes": texts(span.get("attributes", [])),
    }


def expected_log(service: str, log: dict[str, Any]) -> dict[str, Any]:
    return {
        "timestamp": iso(log["timeUnixNano"] if int(log.get("timeUnixNano", 0)) else log["observedTimeUnixNano"]),
        "trace_id": log.get("traceId", "").lower(),
        "span_id": log.get("spanId", "").lower(),
        "severity_text": log.get("severityText", ""),
        "service_name": service,
        "body": as_text(log.get("body", {})),
        "attributes": texts(log.get("attributes", [])),
    }


def records_of(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each record with its service."""
    for group in document.get("resourceSpans", document.get("resourceLogs", [])):
        service = texts(group.get("resource", {}).get("attributes", [])).get("service.name", "")
        for scope in group.get("scopeSpans", group.get("scopeLogs", [])):
            for record in scope.get("spans", scope.get("logRecords", [])):
                yield service, record


def expected_by_session(document: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    make = expected_span if "resourceSpans" in document else expected_log
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for service, record in records_of(document):
        attributes = texts(record.get("attributes", []))
        for session in {attributes.get("gen_ai.session_id"), attributes.get("llm.session_id")} - {None, ""}:
            found[str(session)].append(make(service, record))
    return {
        session: sorted(entries, key=lambda entry: (entry["timestamp"], entry["span_id"]))
        for session, entries in found.items()
    }


def assert_comes_back(api: APIClient, project: Project, document: dict[str, Any]) -> None:
    spans_or_logs = 0 if "resourceSpans" in document else 1
    for session, entries in expected_by_session(document).items():
        found = telemetry_of(api, project.pk, session)[spans_or_logs]
        assert [entry["timestamp"] for entry in found] == [entry["timestamp"] for entry in entries]
        # Logs of the same time have no order.
        key = json.dumps
        assert sorted(map(key, found)) == sorted(json.dumps(entry) for entry in entries)


@pytest.mark.parametrize("path", payloads(), ids=lambda path: path.stem)
def test_payload__as_it_is__every_record_stored_and_every_session_found(
    sender: Sender, api: APIClient, project: Project, path: Path
) -> None:
    document = json.loads(path.read_bytes())
    kind, table = ("traces", "otel_traces") if "resourceSpans" in document else ("logs", "otel_logs")

    for _ in range(2):
        answer = sender.json(kind, document)
        assert (answer.status_code, answer.content) == (200, b"{}")

    [(count,)] = client.execute(f"SELECT count() FROM {table} FINAL")  # noqa: S608 - one of two names
    assert count == len(list(records_of(document))) > 0
    assert_comes_back(api, project, document)


@pytest.mark.parametrize("path", payloads(), ids=lambda path: path.stem)
def test_payload__all_of_one_session__every_record_comes_back(
    sender: Sender, api: APIClient, project: Project, path: Path
) -> None:
    document = json.loads(path.read_bytes())
    for _, record in records_of(document):
        others = [pair for pair in record.get("attributes", []) if not pair["key"].endswith(".session_id")]
        record["attributes"] = [*others, {"key": "gen_ai.session_id", "value": {"stringValue": "whole"}}]
    kind = "traces" if "resourceSpans" in document else "logs"

    sender.json(kind, document)

    spans, logs = telemetry_of(api, project.pk, "whole")
    assert len(spans) + len(logs) == min(len(list(records_of(document))), 500)
    if len(spans) + len(logs) < 500:
        assert_comes_back(api, project, document)


def test_payload__in_protobuf__same_rows_as_in_json(sender: Sender) -> None:
    document = json.loads((OWN / "generations.json").read_bytes())
    sender.json("traces", document)
    for _, record in records_of(document):
        for holder in (record, *record.get("links", ())):
            for name in {"traceId", "spanId", "parentSpanId"} & set(holder):
                holder[name] = base64.b64encode(bytes.fromhex(holder[name])).decode()

    sender.post("traces", ParseDict(document, ExportTraceServiceRequest()).SerializeToString())

    # Equal records have equal ids, so that one of each remains.
    assert client.execute("SELECT count(), countDistinct(RecordId) FROM otel_traces FINAL") == [(3, 3)]


def test_generations__old_and_new_spellings__of_one_session(sender: Sender, api: APIClient, project: Project) -> None:
    sender.json("traces", json.loads((OWN / "generations.json").read_bytes()))

    spans, _ = telemetry_of(api, project.pk, "golden")

    assert [span["attributes"].get("gen_ai.system") for span in spans] == ["OpenAI", "openai", None]
    assert [span["status_code"] for span in spans] == ["Ok", "Unset", "Error"]
    assert spans[2]["attributes"]["gen_ai.input.messages"] == '[{"role":"user","tokens":9007199254740993}]'
    assert telemetry_of(api, project.pk, "older")[0] == spans[2:]
