"""GET /api/llm/sessions lists sessions with their sums, by page and filter."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlencode

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.request_log.record import Outcome
from analytics.scores.services import record_feedback
from analytics.scores.sync.run import copy_due
from core.models import Project
from tests.analytics.sessions.entries import NOW, entry, ids
from tests.factories.analytics import store
from tests.factories.core import make_project
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


def test_sessions__several_requests__sums_equal_plain_arithmetic(api: APIClient, project: Project, spool: Path) -> None:
    entries = [
        entry(project, "s1", 3, user_id="u", prompt_tokens=100, completion_tokens=11, cost_usd="0.0000000001"),
        entry(project, "s1", 2, user_id="", prompt_tokens=7, completion_tokens=0, cost_usd="1.2345678901"),
        entry(project, "s1", 1, outcome=Outcome.ERROR, status_code=503, cost_known=False, cost_usd=""),
        entry(project, "", 1),
        entry(make_project(), "s1", 1),
    ]
    store(spool, *entries)

    answer = api.get("/api/llm/sessions")

    assert answer.json()["count"] == 1
    (session,) = answer.json()["results"]
    mine = [e.record for e in entries[:3]]
    assert session["session_id"] == "s1"
    assert session["user_id"] == "u"
    assert session["request_count"] == len(mine)
    assert session["error_count"] == 1
    assert session["unpriced_request_count"] == 1
    assert session["total_tokens"] == sum(r.prompt_tokens + r.completion_tokens for r in mine)
    exact = json.loads(answer.content, parse_float=Decimal)["results"][0]["total_cost_usd"]
    assert exact == sum(Decimal(r.cost_usd or "0") for r in mine)
    assert session["feedback_score"] is None
    assert session["started_at"] == (NOW - timedelta(minutes=3)).isoformat().replace("+00:00", "Z")
    assert session["ended_at"] == (NOW - timedelta(minutes=1)).isoformat().replace("+00:00", "Z")


def test_sessions__pages__cover_all_once_latest_first(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, *(entry(project, f"s{i}", minutes_ago=i) for i in range(25)))

    first = api.get("/api/llm/sessions")
    second = api.get("/api/llm/sessions", {"offset": 20})
    beyond = api.get("/api/llm/sessions", {"offset": 99})

    assert ids(first) + ids(second) == [f"s{i}" for i in range(25)]
    assert first.json()["count"] == second.json()["count"] == beyond.json()["count"] == 25
    assert first.json()["next"] is not None
    assert ids(beyond) == []


_FILTERS = [
    ({"user_id": "ann"}, ["chat-1"]),
    ({"user_id": "nobody"}, []),
    ({"operation": "messages"}, ["chat_2"]),
    ({"operation": "messages", "user_id": "ann"}, []),
    ({"operation": "rerank"}, []),
    ({"name_pattern": "chat-%"}, ["chat-1"]),
    ({"name_pattern": "chat_2"}, ["chat_2"]),
    ({"name_pattern": "%\\_2"}, ["chat_2"]),
    ({"name_pattern": "2"}, []),
    ({"name_pattern": "' OR 1=1 --"}, []),
    ({"name_pattern": "%ü/%"}, ["grüße ü/1"]),
    ({"name_pattern": "%", "user_id": "bob"}, ["chat_2"]),
]


def test_sessions__filters__keep_what_matches(api: APIClient, project: Project, spool: Path) -> None:
    store(
        spool,
        entry(project, "chat-1", 1, user_id="ann"),
        entry(project, "chat_2", 2, user_id="bob"),
        entry(project, "chat_2", 2, user_id="bob", operation="messages"),
        entry(project, "grüße ü/1", 3, user_id="cyd"),
    )

    for parameters, expected in _FILTERS:
        assert ids(api.get("/api/llm/sessions", parameters)) == expected, parameters


def test_sessions__dates__keep_sessions_active_in_the_range(api: APIClient, project: Project, spool: Path) -> None:
    store(
        spool,
        entry(project, "old", 600),
        entry(project, "long", 600),
        entry(project, "long", 10),
        entry(project, "new", 11),
    )
    hours = {n: (NOW - timedelta(hours=n)).isoformat() for n in (11, 9, 1)}

    assert ids(api.get("/api/llm/sessions", {"start_date": hours[1]})) == ["long", "new"]
    assert ids(api.get("/api/llm/sessions", {"end_date": hours[9]})) == ["long", "old"]
    assert ids(api.get("/api/llm/sessions", {"start_date": hours[11], "end_date": hours[9]})) == ["long", "old"]
    assert ids(api.get("/api/llm/sessions", {"start_date": "2020-01-01", "end_date": "2020-02-01"})) == []
    unescaped = "/api/llm/sessions?start_date=" + hours[1]
    assert ids(api.get(unescaped)) == ["long", "new"]


def test_sessions__pattern_that_ends_in_an_escape__400_naming_it(api: APIClient) -> None:
    answer = api.get("/api/llm/sessions", {"name_pattern": "x\\"})

    assert answer.status_code == 400
    assert "name_pattern" in answer.json()["error"]["details"]


def test_sessions__listing_delay__holds_back_until_quiet(
    api: APIClient, project: Project, spool: Path, settings: Settings
) -> None:
    store(spool, entry(project, "live", 5), entry(project, "closed", 24 * 60 + 1))
    settings.SESSION_LISTING_DELAY_MINUTES = 24 * 60

    assert ids(api.get("/api/llm/sessions")) == ["closed"]


def test_sessions__feedback__score_in_the_list_and_all_in_the_detail(
    api: APIClient, project: Project, spool: Path
) -> None:
    store(spool, entry(project, "rated", 1), entry(project, "silent", 2))
    stranger = make_project()
    for owner, score, text in ((project, 5, ""), (project, 2, "slow"), (project, None, "hm"), (stranger, 1, "theirs")):
        record_feedback(project_id=owner.pk, session_id="rated", score=score, text=text, actor="someone")

    listed = {item["session_id"]: item["feedback_score"] for item in api.get("/api/llm/sessions").json()["results"]}
    detail = api.get("/api/llm/sessions/rated").json()

    assert listed == {"rated": 3.5, "silent": None}
    assert detail["feedback_score"] == 3.5
    assert [(item["score"], item["text"]) for item in detail["feedback"]] == [(None, "hm"), (2, "slow"), (5, "")]


_ODD = [
    {"offset": str(2**62)},
    {"offset": "100000", "limit": "1000"},
    {"start_date": "2199-12-31T23:59:59.999999Z"},
    {"start_date": "2150-01-01", "end_date": "2199-12-31"},
    {"end_date": "1970-01-01"},
    {"name_pattern": "%" * 1024},
    {"name_pattern": "%_" * 512},
    {"name_pattern": "\\" * 1024},
    {"name_pattern": "[(*+?{"},
    {"user_id": "\ud800"},
    {"user_id": "u\\' OR ''='"},
]


def test_sessions__odd_but_valid_filter__answers(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, entry(project, "s"), entry(make_project(), "theirs"))

    for parameters in _ODD:
        answer = api.get(f"/api/llm/sessions?{urlencode(parameters, errors='surrogatepass')}")

        assert answer.status_code == 200, answer.json()
        assert set(ids(answer)) <= {"s"}, parameters


def test_list__cost_and_feedback__whole_sessions_by_cursors(api: APIClient, project: Project, spool: Path) -> None:
    store(
        spool,
        *(entry(project, f"s{number}", number, cost_usd="0.5000000000") for number in range(5)),
        *(entry(project, f"s{number}", 10 + number, cost_usd="0.6000000000") for number in range(4)),
    )
    for session, score in (("s1", 5), ("s2", 1)):
        record_feedback(project_id=project.pk, session_id=session, score=score, text="", actor="test")
    copy_due()
    url, found = "/api/llm/sessions?min_cost_usd=1&limit=2", []

    while url:
        page = api.get(url).json()
        found += [item["session_id"] for item in page["results"]]
        assert page["count"] == 4
        url, back = page["next"], page["previous"]

    assert found == ["s0", "s1", "s2", "s3"]
    first = api.get(back).json()
    assert [item["session_id"] for item in first["results"]] == ["s0", "s1"]
    assert (first["previous"], ids(api.get(first["next"]))) == (None, ["s2", "s3"])
    assert ids(api.get("/api/llm/sessions", {"max_cost_usd": "1"})) == ["s4"]
    assert ids(api.get("/api/llm/sessions", {"feedback": "any"})) == ["s1", "s2"]
    assert ids(api.get("/api/llm/sessions", {"feedback": "good", "user_id": "nobody"})) == []


@pytest.fixture
def figures(project: Project, spool: Path) -> None:
    """`a` is the longest session, `b` has the errors, `c` the most requests, and `d` the highest cost and the score."""
    failed = {"outcome": Outcome.ERROR, "status_code": 500}
    store(
        spool,
        *(entry(project, "a", minutes, cost_usd="0.1000000000") for minutes in (1, 59)),
        *(entry(project, "b", 2 + number, cost_usd="0.1000000000", **failed) for number in range(2)),
        *(entry(project, "c", 4 + number, cost_usd="0.0100000000") for number in range(5)),
        entry(project, "d", 10, cost_usd="0.5000000000"),
    )
    record_feedback(project_id=project.pk, session_id="d", score=4, text="", actor="test")
    record_feedback(project_id=project.pk, session_id="b", score=2, text="", actor="test")
    copy_due()


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("-ended_at", "abcd"),
        ("ended_at", "dcba"),
        ("started_at", "adcb"),
        ("-duration_seconds", "acbd"),
        ("-request_count", "c"),
        ("-error_count", "b"),
        ("-total_tokens", "c"),
        ("-total_cost_usd", "d"),
        ("total_cost_usd", "c"),
        ("-feedback_score", "db"),
        ("feedback_score", "bd"),
    ],
)
def test_list__sorted__pages_lead_on_and_back_in_that_order(
    api: APIClient, figures: None, sort: str, expected: str
) -> None:
    whole = ids(api.get("/api/llm/sessions", {"sort": sort, "limit": "10"}))
    assert "".join(whole).startswith(expected)

    url, pages, backs = f"/api/llm/sessions?sort={sort}&limit=1", [], []
    while url:
        page = api.get(url).json()
        pages.append([item["session_id"] for item in page["results"]])
        backs.append(page["previous"])
        url = page["next"]

    assert [one for page in pages for one in page] == whole
    for page_before, back in zip(pages, backs[1:], strict=False):
        assert ids(api.get(back)) == page_before


def test_list__bounds_of_figures__of_whole_sessions(api: APIClient, figures: None) -> None:
    def found(**query: float) -> str:
        return "".join(sorted(ids(api.get("/api/llm/sessions", query))))

    assert found(min_error_count=1) == "b"
    assert found(max_error_count=0, min_request_count=2) == "ac"
    assert found(min_duration_seconds=600) == "a"
    assert found(max_duration_seconds=0) == "d"
    assert found(max_request_count=1) == "d"


@tabled
def test_list__bad_filter_or_cursor__400_that_names_it(api: APIClient, query: dict[str, str], field: str) -> None:
    answer = api.get("/api/llm/sessions", query)

    assert answer.status_code == 400
    assert set(answer.json()["error"]["details"]) == {field}
