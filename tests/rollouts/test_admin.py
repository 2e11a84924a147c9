from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from core.roles import Role
from rollouts.models import Rollout
from rollouts.services import roll_back_rollout
from tests.factories.core import make_staff
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


def test_list__rollouts__progress_and_status(admin: Client) -> None:
    rollout = make_rollout(started=True, name="shorter")
    make_rollout()
    page = admin.get(LIST).content.decode()
    for text in ("shorter", "1 → 2", "stage 1 of 3, 10 %", "3 stages", rollout.config.name):
        assert text in page
    assert 'value="delete_selected"' not in page
    assert "shorter" in admin.get(LIST, {"q": "short", "status": "running"}).content.decode()


def test_add_and_delete__active__refused(admin: Client) -> None:
    rollout = make_rollout()
    assert admin.get(f"{LIST}add/").status_code == 403
    assert admin.post(f"{LIST}{rollout.pk}/delete/", {"post": "yes"}).status_code == 403
    roll_back_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="test")
    admin.post(f"{LIST}{rollout.pk}/delete/", {"post": "yes"})
    assert not Rollout.objects.exists()
