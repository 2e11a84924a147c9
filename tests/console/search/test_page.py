from __future__ import annotations

import re
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from analytics.queries import visible
from core.models import Project
from core.roles import Role
from core.ui import panels
from tests.analytics.requests.entries import entry
from tests.factories.analytics import store, uuid7
from tests.factories.core import make_key, make_project, make_staff
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout
from tests.store_away import store_away
from tests.waiting import TIMEOUT_SECONDS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/search/"
REQUEST = uuid7(1_790_000_000_000_000)


@pytest.fixture
def reader(client: Client, project: Project) -> Client:
    client.force_login(make_staff(Role.READER, project))
    return client


@pytest.fixture
def log(project: Project, spool: Path) -> None:
    store(
        spool,
        entry(
            project,
            "Where is my <b>parcel</b>?",
            "On its way.",
            10,
            request_id=REQUEST,
            session_id="s-1",
            user_id="ann",
        ),
        entry(project, "Another parcel", "No.", 20, session_id="ann", user_id="bob", model="large"),
        entry(project, "An old parcel", "No.", 60 * 24 * 3, user_id="bob"),
        entry(make_project(), "Their parcel", "No.", 20),
    )


def search(client: Client, project: Project, text: str, **query: Any) -> Any:
    return client.get(PATH, {"project": str(project.pk), "q": text, **query})


def shown(client: Client, project: Project, text: str, **query: Any) -> str:
    answer = search(client, project, text, **query)
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode()


@pytest.mark.usefixtures("log")
def test_palette__name_id_and_word__what_the_person_may_open_in_the_project(
    client: Client, reader: Client, project: Project
) -> None:
    make_config(project, "returns")
    make_config(make_project(), "returned elsewhere")
    found = re.findall(r"<span>([^<]+)</span>", shown(reader, project, "ret", panel="palette"))
    assert found == ["Search texts for “ret”", "returns"]
    assert REQUEST in shown(reader, project, REQUEST, panel="palette")
    assert "Prompts</span>" in (of_reader := shown(reader, project, "prompt", panel="palette"))

    client.force_login(make_staff(Role.EDITOR, project))
    assert "New prompt" in shown(client, project, "prompt", panel="palette") and "New prompt" not in of_reader


@pytest.mark.usefixtures("log")
def test_search__one_id__leads_to_its_page(reader: Client, project: Project) -> None:
    config = make_config(project, "support", versions=2)
    rollout = make_rollout(config)

    for text, address in (
        (REQUEST, f"/admin/analytics/requests/{project.pk}/{REQUEST}/"),
        (f" {REQUEST} ", f"/admin/analytics/requests/{project.pk}/{REQUEST}/"),
        ("bob", f"/admin/analytics/users/{project.pk}/bob"),
        ("s-1", "s-1"),
        ("support", str(config.pk)),
        (str(rollout.pk), f"/admin/rollouts/rollout/{rollout.pk}/change/"),
    ):
        answer = search(reader, project, text)
        assert answer.status_code == 302, text
        assert address in answer.headers["Location"], text


@pytest.mark.usefixtures("log")
def test_search__id_of_several__lists_them(reader: Client, project: Project) -> None:
    text = shown(reader, project, "ann")

    assert "Session: <a" in text
    assert "User: <a" in text


def test_search__beginning_of_a_key__for_administrators(client: Client, reader: Client, project: Project) -> None:
    row, key = make_key(project)

    assert "names no request" in shown(reader, project, row.prefix)
    client.force_login(make_staff(Role.ADMINISTRATOR, project, name="admin"))
    for text in (row.prefix, key):
        assert f"/{row.pk}/" in search(client, project, text).headers["Location"]


@pytest.mark.usefixtures("log")
def test_search__words__found_marked_and_escaped_as_the_api_has_them(
    reader: Client, api: APIClient, project: Project
) -> None:
    text = shown(reader, project, "parcel")

    found = api.post("/api/llm/search", {"query": "parcel"}).json()
    assert [item["user_id"] for item in found["results"]] == ["ann", "bob", "bob"]
    assert text.count("<mark>parcel</mark>") == 2
    assert "Where is my &lt;b&gt;<mark>parcel</mark>&lt;/b&gt;?" in text
    assert "Their" not in text
    assert "An old" in shown(reader, project, "parcel", range="7d")
    assert shown(reader, project, "parcel", model="large").count("<mark>") == 1


@pytest.mark.usefixtures("log")
def test_search__nothing_found_or_too_many_words__says_so(reader: Client, project: Project) -> None:
    assert "Nothing in this range has all of these words." in shown(reader, project, "giraffe")
    assert "at most 20 words" in shown(reader, project, " ".join(f"word{i}" for i in range(21)))
    assert "&lt;script&gt;" in shown(reader, project, "<script>alert(1)</script>")


@pytest.mark.usefixtures("log")
def test_search__reader_without_content__finds_ids_alone(client: Client, project: Project) -> None:
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, project))

    text = shown(client, project, "parcel")

    assert "finds ids alone" in text
    assert "Where is my" not in text
    assert search(client, project, REQUEST).status_code == 302


def test_search__nothing_typed__says_what_can_be(reader: Client, project: Project) -> None:
    answer = reader.get(PATH, {"project": str(project.pk)})

    assert b"Type an id" in b"".join(answer.streaming_content)  # type: ignore[attr-defined]


def test_search__store_away__frame_and_message(reader: Client, project: Project) -> None:
    with store_away():
        text = shown(reader, project, "parcel")

    assert "The analytics store does not answer." in text
    assert "Nothing in this range" not in text


@pytest.mark.usefixtures("log")
def test_search__store_slow__frame_before_its_answer_and_the_record_as_a_link(
    reader: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_answer, find = Event(), visible.query

    def slow(*args: Any, **options: Any) -> Any:
        if options["name"].startswith("lookup."):
            assert may_answer.wait(TIMEOUT_SECONDS)
        return find(*args, **options)

    monkeypatch.setattr(panels, "FIRST_BYTE_SECONDS", 0.01)
    monkeypatch.setattr(visible, "query", slow)
    answer = search(reader, project, REQUEST)
    assert answer.status_code == 200
    may_answer.set()

    text = b"".join(answer.streaming_content).decode()

    assert "names 1 record" in text
    assert f'href="/admin/analytics/requests/{project.pk}/{REQUEST}/' in text
