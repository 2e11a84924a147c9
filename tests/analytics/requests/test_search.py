# ruff: noqa: RUF001 - letters of many scripts are what is tested
from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.queries import search as searching
from core.models import Project
from tests.analytics.requests.entries import NOW, entry
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of, make_project
from tests.tables.cases import stored, tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


def found(api: APIClient, query: str, **body: Any) -> list[str]:
    """Returns the sessions of the found requests, which the tests use as names."""
    answer = api.post("/api/llm/search", {"query": query, **body})
    assert answer.status_code == 200, answer.content
    return [item["session_id"] for item in answer.json()["results"]]


_TEXTS = stored(__file__, "_TEXTS")


def test_search__texts_of_the_world__finds_what_holds_every_part(api: APIClient, project: Project, spool: Path) -> None:
    store(
        spool,
        entry(project, "A xylophonic sound", "Refund the crimson\numbrella, crimson umbrella", 1, session_id="latin"),
        entry(project, "Скажи Привет", "ok", 2, session_id="russian"),
        entry(project, "İstanbul ışık", "ok", 3, session_id="turkish"),
        entry(project, "Ποια οδός;", "Η ΟΔΟΣ και η οδος", 4, session_id="greek"),
        entry(project, "用户请求退款。", "ok", 5, session_id="chinese"),
        entry(project, "مرحبا", "ok 🙂", 6, session_id="arabic"),
        entry(project, "100% of a_b in c:\\d+\\", "it's", 7, session_id="signs"),
    )

    for query, expected in _TEXTS:
        assert found(api, query) == expected, query


def test_search__many_matches__newest_first_and_more(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, *(entry(project, "needle", minutes_ago=i, session_id=f"s{i}") for i in range(25)))

    first = api.post("/api/llm/search", {"query": "needle"}).json()
    older = api.post("/api/llm/search", {"query": "needle", "end_time": first["results"][-1]["created_at"]}).json()

    assert [item["session_id"] for item in first["results"]] == [f"s{i}" for i in range(20)]
    assert (first["count"], first["has_more"], first["searched_since"]) == (20, True, None)
    assert [item["session_id"] for item in older["results"]] == [f"s{i}" for i in range(19, 25)]
    assert (older["count"], older["has_more"]) == (6, False)
    assert found(api, "needle", limit=3) == ["s0", "s1", "s2"]


def test_search__filters__keep_what_passes_all(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result does not depend on how many requests are searched first, nor on how many matches are looked up by
    key."""
    store(
        spool,
        entry(project, "needle", minutes_ago=10, session_id="a", model="m1", user_id="ann"),
        entry(project, "needle", minutes_ago=100, session_id="b", model="m2", user_id="ann"),
        entry(project, "needle", minutes_ago=200, session_id="c", model="m1", user_id="bob"),
        entry(project, "needle", minutes_ago=300, session_id="d", model="m2", user_id="bob", operation="responses"),
        entry(project, "thread", minutes_ago=400, session_id="e", model="m1", user_id="ann"),
    )

    for first_at, few in ((20_000, 1_000), (2, 1_000), (2, 1), (20_000, 1)):
        monkeypatch.setattr(searching, "_LOOK_FIRST_AT", first_at)
        monkeypatch.setattr(searching, "_LOOK_FIRST_AT_FILTERED", first_at)
        monkeypatch.setattr(searching, "_FEW", few)
        _filters_keep_what_passes_all(api)


def _filters_keep_what_passes_all(api: APIClient) -> None:
    def at(minutes: float) -> str:
        return (NOW - timedelta(minutes=minutes)).isoformat()

    assert found(api, "needle") == ["a", "b", "c", "d"]
    assert found(api, "needle", limit=2) == ["a", "b"]
    assert found(api, "needle", model="m1") == ["a", "c"]
    assert found(api, "needle", user_id="bob") == ["c", "d"]
    assert found(api, "needle", user_id="bob", limit=1) == ["c"]
    assert found(api, "needle", model="m2", user_id="bob") == ["d"]
    assert found(api, "needle", model="m3") == []
    assert found(api, "needle", operation="responses") == ["d"]
    assert found(api, "needle", operation="chat", user_id="bob") == ["c"]
    assert found(api, "needle", operation="embeddings") == []
    assert found(api, "needle", session_id="b") == ["b"]
    assert found(api, "needle", session_id="b", model="m1") == []
    assert found(api, "needle", start_time=at(100)) == ["a", "b"]
    assert found(api, "needle", end_time=at(100)) == ["b", "c", "d"]
    assert found(api, "needle", start_time=at(250), end_time=at(50), model="m1") == ["c"]


def test_search__previews__show_and_mark_the_match(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, entry(project, "word " * 100 + "the NEEDLE and" + " word" * 100, "no needles, one needle"))

    [result] = api.post("/api/llm/search", {"query": "needle"}).json()["results"]

    text = result["prompt_preview"]
    assert text.startswith("…")
    assert text.endswith("…")
    assert [text[start:end] for start, end in result["prompt_highlights"]] == ["NEEDLE"]
    assert result["completion_preview"] == "no needles, one needle"
    assert result["completion_highlights"] == [[3, 9], [16, 22]]
    assert result["model"] == "gpt-4o-mini"


def test_search__very_short_words__looks_at_the_newest_texts_only(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "READ_WITHOUT_INDEX", 2)
    store(spool, *(entry(project, "go", minutes_ago=i, session_id=f"s{i}") for i in range(4)))

    answer = api.post("/api/llm/search", {"query": "go"}).json()

    assert [item["session_id"] for item in answer["results"]] == ["s0", "s1"]
    assert answer["searched_since"] == (NOW - timedelta(minutes=1)).isoformat().replace("+00:00", "Z")
    assert found(api, "go user") == ["s0", "s1", "s2", "s3"]


def test_search__store_without_text_indexes__reads_the_newest_texts(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_has_indexes", lambda: False)
    monkeypatch.setattr(searching, "READ_WITHOUT_INDEX", 2)
    store(spool, *(entry(project, "needle", minutes_ago=i, session_id=f"s{i}") for i in range(4)))

    assert found(api, "needle") == ["s0", "s1"]


def test_search__content_not_logged__is_not_found(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, make_entry(project_id=str(project.pk)))

    assert found(api, "user") == []


@tabled
def test_search__bad_body__400_naming_the_field(api: APIClient, body: dict[str, Any], field: str) -> None:
    answer = api.post("/api/llm/search", body)

    assert answer.status_code == 400
    assert field in answer.json()["error"]["details"]


_HOSTILE = [
    "%",
    "_",
    "\\",
    "'",
    '"',
    "' OR 1=1 --",
    "{term0:String}",
    "\x7f",
    "%' UNION SELECT",
    "a" * 1000,
    "\\x00",
    "ﷺ" * 90,
]


def test_search__hostile_query__finds_it_as_text(spool: Path) -> None:
    projects = {query: make_project() for query in _HOSTILE}
    texts = ((project, f"before {query} after", "it") for query, project in projects.items())
    plain = ((project, "plain", "plain") for project in projects.values())
    store(spool, *(entry(project, text, session_id=name) for project, text, name in (*texts, *plain)))

    for query, project in projects.items():
        assert found(client_of(project), query) == ["it"], query


def test_search__more_than_a_query_may_use__503_in_words(
    api: APIClient, project: Project, spool: Path, settings: Settings
) -> None:
    store(spool, *(entry(project, f"needle {i} " * 500) for i in range(200)))
    settings.CLICKHOUSE_QUERY_BYTES = 200_000

    answer = api.post("/api/llm/search", {"query": "needle"})

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "analytics_limit"
