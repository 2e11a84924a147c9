"""`/api/llm/trace-destinations` over HTTP."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.models import TraceDestination
from analytics.trace_export.destinations import headers_of
from core.models import AuditEntry, Project
from tests.fakes.collector import PROTOBUF, Collector, Reply
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db
PATH = "/api/llm/trace-destinations"
SECRET = "Bearer lf-0123456789abcdef"
NEW: dict[str, Any] = {"name": "Langfuse", "endpoint": "http://127.0.0.1:9/api/public/otel"}


@pytest.fixture(autouse=True)
def private_addresses(settings: Settings) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = True


def made(api: APIClient, **given: Any) -> dict[str, Any]:
    answer = api.post(PATH, {**NEW, **given})
    assert answer.status_code == 201, answer.content
    body: dict[str, Any] = answer.json()
    return body


def test_post__then_get_patch_delete(api: APIClient, project: Project) -> None:
    body = made(api, headers={"Authorization": SECRET, "X-Team": "a"}, sampling_ratio=0.25)
    one = f"{PATH}/{body['id']}"
    assert body["endpoint"] == "http://127.0.0.1:9/api/public/otel/v1/traces"
    assert body["headers"] == {"authorization": "****", "x-team": "****"}
    assert (body["enabled"], body["include_content"], body["sampling_ratio"]) == (True, False, 0.25)
    assert (body["status"]["sent_spans"], body["status"]["last_error"]) == (0, "")
    assert api.get(one).json() == body
    assert api.get(PATH).json()["results"] == [body]

    changed = api.patch(one, {**body, "name": "Other", "include_content": True, "headers": {"authorization": "****"}})

    assert changed.status_code == 200, changed.content
    assert (changed.json()["name"], changed.json()["include_content"]) == ("Other", True)
    row = TraceDestination.objects.get()
    assert headers_of(row) == {"authorization": SECRET}
    assert api.delete(one).status_code == 204
    assert api.get(one).json()["error"]["code"] == "trace_destination_not_found"
    entries = AuditEntry.objects.for_project(project.pk).order_by("pk")
    assert [entry.operation for entry in entries] == [
        "createTraceDestination", "changeTraceDestination", "deleteTraceDestination",
    ]  # fmt: skip


def test_secrets__in_no_answer_audit_entry_or_log(
    api: APIClient, project: Project, destination: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    # A collector that quotes the key it was sent.
    destination.usual = Reply(401, f"no such key: {SECRET} or lf-0123456789abcdef".encode(), "text/plain")
    body = made(api, endpoint=destination.url, headers={"authorization": SECRET})
    one = f"{PATH}/{body['id']}"

    shown = [
        api.get(one), api.get(PATH), api.patch(one, {"name": "x"}), api.post(f"{one}/test"), api.get("/api/llm/audit"),
        api.patch(one, {"headers": {"authorization": SECRET + "\n"}}),
    ]  # fmt: skip

    texts = [answer.content.decode() for answer in shown] + [record.getMessage() for record in caplog.records]
    assert shown[-1].status_code == 400
    assert not [text for text in texts if "0123456789abcdef" in text]
    assert SECRET not in TraceDestination.objects.get().encrypted_headers
    assert not [row for row in AuditEntry.objects.for_project(project.pk) if "0123456789" in str(row.changes)]


def test_post__a_name_again__conflict(api: APIClient) -> None:
    made(api)
    again = api.post(PATH, NEW)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "trace_destination_exists")


@tabled
def test_post__bad_value__names_its_field(api: APIClient, values: dict[str, Any], field: str) -> None:
    refused = api.post(PATH, {**NEW, **values})
    assert refused.status_code == 400
    assert list(refused.json()["error"]["details"]) == [field]


@tabled
def test_post__private_host_or_plain_http__refused(api: APIClient, settings: Settings, endpoint: str) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    refused = api.post(PATH, {**NEW, "endpoint": endpoint})
    assert refused.status_code == 400
    assert list(refused.json()["error"]["details"]) == ["endpoint"]
    assert not TraceDestination.objects.exists()


def test_patch__another_host__needs_the_headers_again(api: APIClient) -> None:
    one = f"{PATH}/{made(api, headers={'authorization': SECRET})['id']}"

    kept = api.patch(one, {"endpoint": "http://127.0.0.1:10"})
    masked = api.patch(one, {"endpoint": "http://127.0.0.1:10", "headers": {"authorization": "****"}})

    assert list(kept.json()["error"]["details"]) == ["headers"]
    assert list(masked.json()["error"]["details"]) == ["headers.authorization"]
    assert api.patch(one, {"endpoint": "http://127.0.0.1:9/other"}).status_code == 200
    moved = api.patch(one, {"endpoint": "http://127.0.0.1:10", "headers": {"authorization": SECRET}})
    assert moved.json()["endpoint"] == "http://127.0.0.1:10/v1/traces"


def test_test__collector_takes_the_span__ok_with_its_trace(api: APIClient, destination: Collector) -> None:
    one = f"{PATH}/{made(api, endpoint=destination.url, headers={'x-honeycomb-team': 'abcdef'})['id']}"

    outcome = api.post(f"{one}/test").json()

    [post] = destination.taken
    [span] = post.spans
    assert (outcome["ok"], outcome["status"], outcome["detail"]) == (True, 200, "")
    assert outcome["latency_ms"] > 0
    assert (post.path, post.headers["x-honeycomb-team"], post.headers["content-type"]) == (
        "/v1/traces", "abcdef", PROTOBUF,
    )  # fmt: skip
    assert span.trace_id.hex() == outcome["trace_id"]
    assert post.resource["service.name"] == "prompt-gateway"


@tabled
def test_test__refused__says_what_the_collector_said(
    api: APIClient, destination: Collector, reply: Reply, status: int, said: str
) -> None:
    destination.usual = reply
    one = f"{PATH}/{made(api, endpoint=destination.url)['id']}"

    outcome = api.post(f"{one}/test").json()

    assert (outcome["ok"], outcome["status"], outcome["detail"]) == (False, status, said)
    # A redirect is not followed.
    assert [post.path for post in destination.posts] == ["/v1/traces"]


def test_test__nobody_answers_or_private_since__says_so(api: APIClient, settings: Settings) -> None:
    one = f"{PATH}/{made(api)['id']}"
    silent = api.post(f"{one}/test").json()
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    private = api.post(f"{one}/test").json()

    assert (silent["ok"], silent["status"], silent["latency_ms"]) == (False, None, None)
    assert silent["detail"].startswith("No connection")
    assert private["detail"] == "The address is on a private network."
