"""Exports that are refused as a whole are answered with the status and message of OTLP/HTTP."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # it comes without types
from pytest_django import Settings

from analytics.clickhouse import client
from analytics.errors import AnalyticsUnavailableError
from core.models import Project
from tests.analytics.telemetry.sending import JSON, PROTOBUF, Sender, decoded, rows, span, traces
from tests.factories.core import make_key, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("telemetry")]


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


@pytest.mark.parametrize("form", [PROTOBUF, JSON])
def test_resource__larger_than_a_record_may_be__413(sender: Sender, form: str) -> None:
    export = traces(span(1), service="x" * 9_000_000)
    content = export.SerializeToString() if form == PROTOBUF else json.dumps(MessageToDict(export)).encode()

    assert sender.post("traces", content, form).status_code == 413


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
