"""A trace that names a session belongs to its timeline whole: the application's spans above the gateway's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.clickhouse import client
from core.models import Project
from tests.analytics.sessions.traced import WHOLE, around, call
from tests.analytics.telemetry.sending import SESSION, Sender, span, telemetry_of
from tests.factories.analytics import store
from tests.factories.core import make_key, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

URL = f"/api/llm/sessions/{SESSION}/timeline"
PAGE = Path(__file__).parents[3] / "docs" / "analytics.md"


def nodes(api: APIClient, session: str = SESSION) -> list[Any]:
    answer = api.get(f"/api/llm/sessions/{session}/timeline")
    assert answer.status_code == 200, answer.content
    return list(answer.json()["nodes"])


def names(api: APIClient, session: str = SESSION) -> list[tuple[str, int]]:
    return [(node["name"], node["depth"]) for node in nodes(api, session)]


def test_timeline__application_names_the_session__whole_trace_below_its_root(
    api: APIClient, project: Project, spool: Path, sender: Sender
) -> None:
    made = call(project, "", 2)
    store(spool, made)
    sender.traces(around(made, 1), around(made, 2, 1, session__id=SESSION))

    assert names(api) == WHOLE
    request = nodes(api)[2]
    assert (request["kind"], request["request_id"]) == ("request", made.record.request_id)
    assert (request["total_tokens"], request["cost_usd"]) == (17, 0.0000048)


def test_timeline__request_names_the_session__whole_trace_below_its_root(
    api: APIClient, project: Project, spool: Path, sender: Sender
) -> None:
    made = call(project, SESSION, 2)
    store(spool, made)
    sender.traces(around(made, 1), around(made, 2, 1))

    assert names(api) == WHOLE
    spans, _ = telemetry_of(api, project.pk)
    assert [one["span_name"] for one in spans] == [name for name, _ in WHOLE[2:]]


def test_timeline__parent_was_not_sent__gateways_span_is_a_root(
    api: APIClient, project: Project, spool: Path, sender: Sender
) -> None:
    made = call(project, SESSION, 7)
    store(spool, made)
    sender.traces(around(made, 1))

    assert names(api) == [("span 1", 0), (WHOLE[2][0], 0), (WHOLE[3][0], 1)]


def test_timeline__trace_of_two_sessions__in_both(
    api: APIClient, project: Project, spool: Path, sender: Sender
) -> None:
    made = call(project, "other", 2)
    store(spool, made)
    sender.traces(around(made, 1), around(made, 2, 1, session__id=SESSION))

    assert names(api) == names(api, "other") == WHOLE


def test_timeline__other_traces_and_projects__are_not_in_it(
    api: APIClient, project: Project, spool: Path, sender: Sender
) -> None:
    other_project = make_project()
    made, other = call(project, "", 2), call(project, "", 2, trace_id="cd" * 16)
    store(spool, made, other, call(other_project, "", 2))
    sender.traces(around(made, 1), around(made, 2, 1, session__id=SESSION))
    elsewhere = around(made, 3)
    elsewhere.trace_id = b"\xcd" * 16
    sender.traces(elsewhere)
    Sender(make_key(other_project, scopes=["gateway"])[1]).traces(around(made, 4, 1))

    assert names(api) == WHOLE


def _documented() -> list[str]:
    """Returns the attributes of which the page says that they count in timelines."""
    listed = re.search(r"without a setting:(.*?)\.\n", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert listed
    return re.findall(r"`([\w.]+)`", listed[1])


@pytest.mark.parametrize("attribute", ["gen_ai.session_id", "llm.session_id", *_documented()])
def test_timeline__attribute_of_an_instrumentation__names_the_session(
    api: APIClient, sender: Sender, attribute: str
) -> None:
    sender.traces(span(1, {}), span(2, {attribute: SESSION}))

    assert names(api) == [("span 1", 0), ("span 2", 0)]


def test_attributes__of_the_table__are_those_of_the_page(clickhouse: None) -> None:
    for table in ("otel_traces", "otel_logs"):
        [(expression,)] = client.execute(
            "SELECT default_expression FROM system.columns WHERE database = currentDatabase()"
            " AND table = {table:String} AND name = 'TimelineSessionIds'",
            {"table": table},
        )
        assert set(re.findall(r"Attributes\['([\w.]+)'\]", expression)) == {
            "gen_ai.session_id", "llm.session_id", *_documented()
        }  # fmt: skip


def test_telemetry__attributes_of_timelines__count_only_where_the_setting_names_them(
    api: APIClient, project: Project, sender: Sender, settings: Settings
) -> None:
    settings.OTLP_SESSION_ATTRIBUTES = ["tenant.thread"]
    sender.traces(*(span(place, {name: SESSION}) for place, name in enumerate(_documented(), 1)))
    sender.traces(span(90, {"tenant.thread": SESSION}))

    assert [one["span_name"] for one in telemetry_of(api, project.pk)[0]] == ["span 90"]
    assert names(api)[-1] == ("span 90", 0)
    assert len(names(api)) == len(_documented()) + 1


def test_timeline__more_spans_than_are_shown__the_first_of_all_and_truncated(
    api: APIClient, project: Project, spool: Path, sender: Sender
) -> None:
    made = call(project, "", 1)
    store(spool, made)
    sender.traces(*(around(made, number, 1 if number > 1 else 0) for number in range(1, 600)))
    sender.traces(around(made, 600, 1, session__id=SESSION))

    shown = api.get(URL).json()

    assert shown["truncated"]
    assert len(shown["nodes"]) == 500
    assert shown["nodes"][0]["name"] == "span 1"
