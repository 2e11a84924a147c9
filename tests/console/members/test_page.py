"""The page of members: added, given another role, taken out, and the last administrator stays."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from django.test import Client

from core.models import AuditEntry, Membership, Project
from core.roles import Role
from tests.factories.core import make_project, make_staff

pytestmark = pytest.mark.django_db

PATH = "/admin/members/"


@pytest.fixture
def administrator(project: Project) -> Client:
    client = Client()
    client.force_login(make_staff(Role.ADMINISTRATOR, project, name="ann"))
    return client


def _shown(client: Client, project: Project) -> str:
    answer = client.get(PATH, {"project": str(project.pk)})
    assert answer.status_code == 200
    return unescape(b"".join(answer.streaming_content).decode())  # type: ignore[attr-defined]


def _sent(client: Client, project: Project, **values: Any) -> Any:
    return client.post(f"{PATH}?project={project.pk}", values)


def test_add__staff_account__is_a_member_and_audited(administrator: Client, project: Project) -> None:
    make_staff(name="bob")

    assert _sent(administrator, project, action="add", username="bob", role="editor").status_code == 302

    assert Membership.objects.get(user__username="bob").role == Role.EDITOR
    assert "bob" in _shown(administrator, project)
    [entry] = AuditEntry.objects.all()
    assert (entry.actor_name, entry.operation, entry.object_label) == ("ann", "members", "bob")


def test_add__unknown_name__said_at_the_field_and_kept(administrator: Client, project: Project) -> None:
    answer = _sent(administrator, project, action="add", username="nobody-here", role="editor")

    text = unescape(b"".join(answer.streaming_content).decode())
    assert "There is no member of staff with this name" in text
    assert 'value="nobody-here"' in text


def test_change_and_remove__member__done(administrator: Client, project: Project) -> None:
    row = Membership.objects.get(user=make_staff(Role.READER, project, name="bob"))

    _sent(administrator, project, action="change", member=row.pk, role="editor")
    row.refresh_from_db()
    assert row.role == Role.EDITOR
    _sent(administrator, project, action="remove", member=row.pk)
    assert not Membership.objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize("values", [{"action": "remove"}, {"action": "change", "role": "reader"}])
def test_last_administrator__stays(administrator: Client, project: Project, values: dict[str, str]) -> None:
    row = Membership.objects.get(user__username="ann")

    _sent(administrator, project, member=row.pk, **values)

    row.refresh_from_db()
    assert row.role == Role.ADMINISTRATOR
    assert "last administrator" in _shown(administrator, project)


def test_member__of_another_project__not_touched(administrator: Client, project: Project) -> None:
    other = make_project()
    row = Membership.objects.get(user=make_staff(Role.READER, other))

    _sent(administrator, project, action="remove", member=row.pk)

    assert Membership.objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMINISTRATOR])
def test_page__lower_roles__403(project: Project, role: Role) -> None:
    client = Client()
    client.force_login(make_staff(role, project))

    assert client.get(PATH, {"project": str(project.pk)}).status_code == 403
    assert _sent(client, project, action="add", username="x", role="reader").status_code == 403
