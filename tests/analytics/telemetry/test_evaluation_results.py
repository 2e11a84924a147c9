"""Results of evaluations that applications export as events, and that become scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from analytics.models import Score
from core.models import Project
from tests.analytics.telemetry.sending import START, Sender, pairs, rows
from tests.factories.analytics import make_entry, store_as_of_then
from tests.factories.core import make_key

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clickhouse", "telemetry")]


def result(number: int, value: AnyValue | None = None, **attributes: str) -> LogRecord:
    named = {name.replace("__", "."): one for name, one in attributes.items()}
    given = pairs({"gen_ai.evaluation.name": "resolved", **named})
    if value is not None:
        given.append(KeyValue(key="gen_ai.evaluation.score.value", value=value))
    return LogRecord(time_unix_nano=START + number, event_name="gen_ai.evaluation.result", attributes=given)


def recorded() -> list[tuple[Any, ...]]:
    return list(Score.objects.values_list("request_id", "score_value", "score_type"))


@pytest.fixture
def scoring(project: Project) -> Sender:
    return Sender(make_key(project, scopes=["gateway", "scores:write"])[1])


def test_results__of_a_request_and_a_session__scores_once_each(project: Project, scoring: Sender, spool: Path) -> None:
    entry = make_entry(project_id=str(project.pk), session_id="s-9")
    store_as_of_then(spool, entry)
    mine = str(entry.record.request_id)
    sent = [
        result(1, AnyValue(double_value=0.5), prompt_gateway__request_id="req-1"),
        result(2, AnyValue(bool_value=True), session__id="s-9"),
        result(3, AnyValue(bool_value=True), session__id="unknown"),
        result(4, AnyValue(string_value="high"), session__id="s-9"),
        result(5, session__id="s-9"),
        result(6, AnyValue(bool_value=True)),
        result(7, AnyValue(double_value=1e9), prompt_gateway__request_id="req-1"),
    ]
    for _ in range(2):
        assert scoring.logs(*sent).status_code == 200
    assert sorted(recorded()) == sorted([("req-1", 0.5, "number"), (mine, 1.0, "boolean")])
    assert rows("otel_logs") == 7


def test_results__by_a_key_that_may_not_write_scores__kept_as_events_alone(sender: Sender) -> None:
    answer = sender.logs(result(1, AnyValue(double_value=0.5), prompt_gateway__request_id="req-1"))
    assert answer.status_code == 200
    assert (recorded(), rows("otel_logs")) == ([], 1)
