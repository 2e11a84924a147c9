"""GET /api/llm/sessions/{id}/transcript shows the conversation of a session, each turn once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.request_log.record import Outcome
from core.models import Project
from tests.analytics.sessions.entries import entry
from tests.factories.analytics import store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

URL = "/api/llm/sessions/chat/transcript"


def call(project: Project, number: int, turns: list[str], answer: str, **values: Any) -> Any:
    """A call of a conversation, of which `turns` are those so far."""
    messages = [{"role": "assistant" if place % 2 else "user", "content": text} for place, text in enumerate(turns)]
    completion = {"choices": [{"message": {"role": "assistant", "content": answer}}]}
    made = entry(project, "chat", 100 - number, **values)
    return type(made)(made.record, json.dumps({"messages": messages}).encode(), json.dumps(completion).encode())


def store_conversation(project: Project, spool: Path, calls: int) -> list[str]:
    """Stores a conversation of `calls` calls; returns its turns, with the last answer."""
    turns = ["u0"]
    for number in range(calls):
        store(spool, call(project, number, turns, f"a{number}"))
        turns += [f"a{number}", f"u{number + 1}"]
    return turns[:-1]


def texts(turns: list[Any]) -> list[str]:
    return [part["text"] for turn in turns for part in turn["parts"]]


def test_transcript__conversation__each_turn_once(api: APIClient, project: Project, spool: Path) -> None:
    turns = store_conversation(project, spool, 3)

    body = api.get(URL).json()

    assert [text for item in body["results"] for text in (*texts(item["turns"]), *texts(item["answer"]))] == turns
    assert [item["known_turns"] for item in body["results"]] == [0, 2, 4]
    assert body["next_cursor"] is None


def test_transcript__pages__same_as_all_at_once(api: APIClient, project: Project, spool: Path) -> None:
    turns = store_conversation(project, spool, 5)
    found: list[str] = []
    cursor: str | None = ""

    while cursor is not None:
        page = api.get(URL, {"limit": "2", "cursor": cursor}).json()
        found += [text for item in page["results"] for text in (*texts(item["turns"]), *texts(item["answer"]))]
        cursor = page["next_cursor"]

    assert found == turns


def test_transcript__body_not_logged_or_too_large__note(api: APIClient, project: Project, spool: Path) -> None:
    large = call(project, 2, ["x" * 5_000_000], "big")
    store(spool, entry(project, "chat", 99, outcome=Outcome.ERROR, status_code=503, error_code="no_provider"), large)

    first, second = api.get(URL).json()["results"]

    assert (first["note"], first["turns"], first["error_code"]) == ("not_logged", [], "no_provider")
    assert (second["note"], second["answer"]) == ("too_large", [])


def test_transcript__long_text__cut_with_its_length(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, call(project, 1, ["x" * 30_000], "short"))

    [item] = api.get(URL).json()["results"]

    [part] = item["turns"][0]["parts"]
    assert (len(part["text"]), part["characters"]) == (20_000, 30_000)


@pytest.mark.parametrize("query", [{"cursor": "x"}, {"cursor": "1-zz"}])
def test_transcript__bad_parameter__400_that_names_it(api: APIClient, query: dict[str, Any]) -> None:
    answer = api.get(URL, query)

    assert answer.status_code == 400
    assert set(answer.json()["error"]["details"]) == set(query)
