from __future__ import annotations

import pytest
from django.test import Client

from console.rollouts import list as page
from core.models import Project
from core.roles import Role
from rollouts.models import RolloutEvaluation
from rollouts.services import roll_back_rollout
from tests.console.pages import shown
from tests.factories.core import make_staff
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout

pytestmark = pytest.mark.django_db

PATH = "/admin/rollouts/"


@pytest.fixture
def reader(client: Client, project: Project) -> Client:
    client.force_login(make_staff(Role.READER, project))
    return client


def test_list__rollouts__what_they_are_and_where_they_stand(reader: Client, project: Project) -> None:
    rollout = make_rollout(make_config(project, "support", versions=2), started=True, name="<b>shorter</b>")
    RolloutEvaluation.objects.filter(pk=rollout.pk).update(
        verdict={"status": "failing", "explanation": "<i>Errors</i>: 9 % against 1 %. Do that."},
        decided_at=rollout.started_at,
    )
    text = shown(reader, PATH, project)
    for part in (
        "&lt;b&gt;shorter",
        "support",
        "1 to 2",
        "running",
        "1 of 3, 10 %",
        "&lt;i&gt;Errors&lt;/i&gt;: 9 % against 1 %.</td>",
    ):
        assert part in text
    assert f"/admin/rollouts/rollout/{rollout.pk}/change/" in text
    assert "<b>shorter" not in text


def test_list__filters__those_that_fit(reader: Client, project: Project) -> None:
    ended = make_rollout(make_config(project, "ended", versions=2), name="was ended")
    roll_back_rollout(project_id=project.pk, rollout_id=ended.pk, actor="test")
    make_rollout(make_config(project, "new", versions=2), name="is new")
    for query, name in (({"status": "pending"}, "is new"), ({"config_id": str(ended.config_id)}, "was ended")):
        text = shown(reader, PATH, project, **query)
        assert [one in text for one in ("is new", "was ended")] == [name == "is new", name == "was ended"]
    for query in ({"mode": "auto"}, {"config_id": "x"}):
        assert "No rollout fits these filters." in shown(reader, PATH, project, **query)


def test_list__many__next_page_by_cursor(reader: Client, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE_ROWS", 2)
    made = [make_rollout(make_config(project, versions=2)) for _ in range(3)]
    text = shown(reader, PATH, project)
    assert [row.name in text for row in made] == [False, True, True]
    text = shown(reader, PATH, project, cursor=str(made[1].pk))
    assert [row.name in text for row in made] == [True, False, False]


def test_list__nothing_yet__says_so_and_leads_on_who_may(client: Client, reader: Client, project: Project) -> None:
    assert "No prompt of this project was rolled out yet." in shown(reader, PATH, project)
    assert "/admin/rollouts/new/" not in shown(reader, PATH, project)
    client.force_login(make_staff(Role.EDITOR, project))
    assert "/admin/rollouts/new/" in shown(client, PATH, project)


def test_list__other_projects__not_there(reader: Client, project: Project) -> None:
    other = make_rollout(name="of others")
    assert "of others" not in shown(reader, PATH, project)
    assert reader.get(PATH, {"project": str(other.project_id)}).status_code == 404
