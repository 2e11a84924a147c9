from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from core.models import AuditEntry, Membership, Project
from core.roles import Role
from tests.console.conftest import sent, shown
from tests.factories.core import make_project, make_staff

pytestmark = pytest.mark.django_db

PATH = "/admin/members/"


@pytest.fixture
def administrator(project: Project) -> Client:
    client = Client()
    client.force_login(make_staff(Role.ADMINISTRATOR, project, name="ann"))
    return client


def test_add__staff_account__is_a_member_and_audited(administrator: Client, project: Project) -> None:
    make_staff(name="bob")

    assert sent(administrator, project, PATH, action="add", username="bob", role="editor").status_code == 302

    assert Membership.objects.get(user__username="bob").role == Role.EDITOR
    assert "bob" in shown(administrator, project, PATH)
    [entry] = AuditEntry.objects.all()
    assert (entry.actor_name, entry.operation, entry.object_label) == ("ann", "members", "bob")


def test_add__unknown_name__said_at_the_field_and_kept(administrator: Client, project: Project) -> None:
    answer = sent(administrator, project, PATH, action="add", username="nobody-here", role="editor")

    text = unescape(b"".join(answer.streaming_content).decode())
    assert "There is no member of staff with this name" in text
    assert 'value="nobody-here"' in text


def test_change_and_remove__member__done(administrator: Client, project: Project) -> None:
    row = Membership.objects.get(user=make_staff(Role.READER, project, name="bob"))

    sent(administrator, project, PATH, action="change", member=row.pk, role="editor")
    row.refresh_from_db()
    assert row.role == Role.EDITOR
    sent(administrator, project, PATH, action="remove", member=row.pk)
    assert not Membership.objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize("values", [{"action": "remove"}, {"action": "change", "role": "reader"}])
def test_last_administrator__stays(administrator: Client, project: Project, values: dict[str, str]) -> None:
    row = Membership.objects.get(user__username="ann")

    sent(administrator, project, PATH, member=row.pk, **values)

    row.refresh_from_db()
    assert row.role == Role.ADMINISTRATOR
    assert "last administrator" in shown(administrator, project, PATH)


def test_member__of_another_project__not_touched(administrator: Client, project: Project) -> None:
    other = make_project()
    row = Membership.objects.get(user=make_staff(Role.READER, other))

    sent(administrator, project, PATH, action="remove", member=row.pk)

    assert Membership.objects.filter(pk=row.pk).exists()
