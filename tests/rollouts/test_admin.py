from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from core.roles import Role
from rollouts.models import Rollout, RolloutTransition
from rollouts.services import promote_rollout, roll_back_rollout
from tests.factories.core import make_staff
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout

pytestmark = pytest.mark.django_db

LIST = "/admin/rollouts/rollout/"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password="long enough"))
    return client


def staff(client: Client, role: Role | None, rollout: Rollout) -> Client:
    client.force_login(make_staff(role, rollout.project))
    return client


def page_of(rollout: Rollout) -> str:
    return f"{LIST}{rollout.pk}/change/"


def act(client: Client, action: str, *rollouts: Rollout, **more: str) -> str:
    form = {"action": action, "_selected_action": [str(row.pk) for row in rollouts], **more}
    return client.post(LIST, form, follow=True).content.decode()


def test_list__rollouts__progress_and_status(admin: Client) -> None:
    rollout = make_rollout(started=True, name="shorter")
    make_rollout()
    page = admin.get(LIST).content.decode()
    for text in ("shorter", "1 → 2", "stage 1 of 3, 10 %", "3 stages", rollout.config.name):
        assert text in page
    assert 'value="delete_selected"' not in page
    assert "shorter" in admin.get(LIST, {"q": "short", "status": "running"}).content.decode()


@pytest.mark.parametrize(
    ("action", "started", "status"),
    [
        ("start", False, "running"),
        ("pause", True, "paused"),
        ("promote", True, "running"),
        ("roll_back", True, "rolled_back"),
        ("complete", True, "completed"),
    ],
)
def test_action__confirmed__done_and_in_both_trails(admin: Client, action: str, started: bool, status: str) -> None:
    rollout = make_rollout(started=started)
    before = RolloutTransition.objects.count()

    question = act(admin, action, rollout)

    assert f"Yes, {action.replace('_', ' ')}" in question
    assert RolloutTransition.objects.count() == before
    stage = str(rollout.current_stage)
    answer = act(admin, action, rollout, confirmed="yes", reason="as agreed", **{f"stage_{rollout.pk}": stage})
    assert f"is now {status.replace('_', ' ')}" in answer
    move = RolloutTransition.objects.latest("id")
    assert (move.action, move.actor, move.reason, move.to_status) == (action, "user:root", "as agreed", status)
    entry = LogEntry.objects.get()
    assert (entry.object_id, "as agreed" in entry.change_message) == (str(rollout.pk), True)


def test_action__several__each_moved_or_refused(admin: Client) -> None:
    running, pending = make_rollout(started=True), make_rollout(make_config(versions=2))
    answer = act(admin, "pause", running, pending, confirmed="yes", reason="")
    assert f"Rollout {running.name} is now paused." in answer
    assert f"Rollout {pending.name}: Cannot pause a rollout that is pending" in answer


def test_promote__moved_since_the_question__refused(admin: Client) -> None:
    rollout = make_rollout(started=True)
    promote_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="auto")
    answer = act(admin, "promote", rollout, confirmed="yes", reason="", **{f"stage_{rollout.pk}": "1"})
    assert "moved to another stage" in answer
    rollout.refresh_from_db()
    assert rollout.current_stage == 2


def test_action__reason_too_long__question_repeated(admin: Client) -> None:
    rollout = make_rollout()
    assert "at most 1000" in act(admin, "start", rollout, confirmed="yes", reason="x" * 1001)
    rollout.refresh_from_db()
    assert rollout.status == "pending"


def test_staff__without_permission__403(client: Client) -> None:
    rollout = make_rollout()
    stranger = staff(client, None, rollout)
    assert stranger.get(LIST).status_code == stranger.get(page_of(rollout)).status_code == 403


def test_add_and_delete__active__refused(admin: Client) -> None:
    rollout = make_rollout()
    assert admin.get(f"{LIST}add/").status_code == 403
    assert admin.post(f"{LIST}{rollout.pk}/delete/", {"post": "yes"}).status_code == 403
    roll_back_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="test")
    admin.post(f"{LIST}{rollout.pk}/delete/", {"post": "yes"})
    assert not Rollout.objects.exists()
