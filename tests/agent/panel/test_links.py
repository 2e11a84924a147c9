from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agent.panel.links import links_of
from core.models import Project
from core.roles import Role
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_project, make_staff
from tests.factories.prompts import make_config
from tests.factories.reviews import make_queue
from tests.factories.rollouts import make_rollout
from tests.store_away import store_away

RENDERED = "/admin/agent/panel/rendered/"


@pytest.fixture
def request_id(clickhouse: None, project: Project, tmp_path: Path) -> str:
    entry = make_entry(project_id=str(project.pk), session_id="s/1", user_id="ann")
    store(tmp_path, entry, make_entry(user_id="stranger", session_id="theirs"))
    return entry.record.request_id


def test_links__of_all_kinds__lead_to_their_pages(project: Project, request_id: str) -> None:
    config = make_config(project, versions=2, name="greeting")
    rollout = make_rollout(config)
    queue = make_queue(project, name="Did it help?")
    key = make_key(project, name="the shop")[0]
    texts = {
        request_id, request_id.upper(), "ann", "s/1", "greeting", str(config.pk), str(rollout.pk), "Did it help?",
        "the shop", key.prefix, "stranger", "theirs", "gpt-4o", "",
    }  # fmt: skip

    found = links_of(make_staff(Role.READER, project), project.pk, texts)

    assert f"/admin/analytics/requests/{project.pk}/{request_id}/?project={project.pk}" in found.values()
    assert found["ann"].endswith("&user_id=ann")
    assert str(rollout.pk) in found[str(rollout.pk)]
    assert f"/{project.pk}/{queue.pk}/" in found["Did it help?"]
    assert found["the shop"] == found[key.prefix]
    assert not found.keys() & {"stranger", "theirs", "gpt-4o", ""}


@pytest.mark.usefixtures("request_id")
def test_links__person_without_a_role_in_the_project__none(project: Project) -> None:
    elsewhere = make_staff(Role.ADMINISTRATOR, make_project())

    assert links_of(elsewhere, project.pk, {"ann"}) == {}
    assert links_of(make_staff(), project.pk, {"ann"}) == {}


def test_links__store_away__those_of_the_sql_database(project: Project) -> None:
    queue = make_queue(project, name="Did it help?")

    with store_away():
        found = links_of(make_staff(Role.READER, project), project.pk, {"Did it help?", "ann"})

    assert list(found) == ["Did it help?"] and str(queue.pk) in found["Did it help?"]


def test_render__with_a_project__links_what_is_there(project: Project, request_id: str) -> None:
    client = Client()
    client.force_login(make_staff(Role.READER, project))

    def html(**body: Any) -> str:
        given = {"texts": [f"Request {request_id} of `ann` and `stranger`"], **body}
        return str(client.post(RENDERED, json.dumps(given), content_type="application/json").json()["html"][0])

    linked = html(project_id=str(project.pk))
    assert f'href="/admin/analytics/requests/{project.pk}/{request_id}/' in linked
    assert "user_id=ann" in linked and "<code>stranger</code>" in linked and "user_id=stranger" not in linked
    assert "<a" not in html() and "<a" not in html(project_id=str(make_project().pk))


def test_beside__page__knows_its_origin_and_its_questions(project: Project) -> None:
    client = Client()
    client.force_login(make_staff(Role.READER, project))

    def beside(page: str) -> str:
        answer = client.get("/admin/agent/panel/beside/", {"from": page})
        assert answer.status_code == 200
        return str(answer.content.decode())

    home = beside(f"/admin/?project={project.pk}&range=7d")
    assert "Is anything wrong right now?" in home and '"range": "7d"' in home and "<html" not in home
    assert "Which of these errors are new?" not in home
    assert f'data-project="{project.pk}"' in home
    assert "How far do reviewers and judges agree?" in beside(f"/admin/reviews/?project={project.pk}")


def test_beside__without_the_right_to_texts__refused(project: Project) -> None:
    client = Client()
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, project))

    assert client.get("/admin/agent/panel/beside/").status_code == 403
