from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from core.api.authentication import ProjectAccess, rights_now
from core.models import Membership, Project
from core.rights.asking import rights_in
from core.roles import Role
from tests.factories.core import make_key, make_project, make_staff

PATH = "/api/llm/members"


@pytest.fixture
def ada(project: Project) -> User:
    return make_staff(Role.ADMINISTRATOR, project, name="ada")


def ask(user: User, project: Project, method: str, path: str = PATH, body: Any = None) -> Any:
    client = APIClient(raise_request_exception=False)
    client.force_login(user)
    return client.generic(
        method.upper(), path, json.dumps(body or {}), content_type="application/json",
        headers={"X-Project-Id": str(project.pk)},
    )  # fmt: skip


def roles(project: Project) -> dict[str, str]:
    return dict(Membership.objects.filter(project=project).values_list("user__username", "role"))


@pytest.mark.parametrize("is_superuser", [False, True])
@pytest.mark.parametrize("lost", ["is_staff", "is_active"])
def test_rights__account_that_may_not_sign_in_any_more__none(
    project: Project, ada: User, lost: str, is_superuser: bool
) -> None:
    access = ProjectAccess(project.pk, rights_in(ada, project.pk), "user:ada", ada.pk)
    assert rights_now(access)
    User.objects.filter(pk=ada.pk).update(is_superuser=is_superuser, **{lost: False})
    assert rights_now(access) == frozenset()


def test_members__by_an_administrator__added_changed_and_taken_out(project: Project, ada: User) -> None:
    make_staff(name="bob")
    made = ask(ada, project, "post", body={"username": "bob", "role": "reader"})
    assert made.status_code == 201, made.content
    assert made.json().items() >= {"username": "bob", "role": "reader", "created_by": "user:ada"}.items()

    again = ask(ada, project, "post", body={"username": "bob", "role": "editor"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "member_exists")
    changed = ask(ada, project, "patch", f"{PATH}/{made.json()['id']}", {"role": "editor"})
    assert (changed.status_code, changed.json()["role"]) == (200, "editor")
    assert [item["username"] for item in ask(ada, project, "get").json()["results"]] == ["ada", "bob"]
    assert ask(ada, project, "delete", f"{PATH}/{made.json()['id']}").status_code == 204
    assert roles(project) == {"ada": "administrator"}


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMINISTRATOR])
def test_members__below_administrator__nobody_makes_himself_more(project: Project, ada: User, role: Role) -> None:
    eve = make_staff(role, project, name="eve")
    row = Membership.objects.get(user=eve)

    for answer in (
        ask(eve, project, "get"),
        ask(eve, project, "post", body={"username": "eve", "role": "administrator"}),
        ask(eve, project, "patch", f"{PATH}/{row.pk}", {"role": "administrator"}),
        ask(eve, project, "delete", f"{PATH}/{Membership.objects.get(user=ada).pk}"),
        ask(eve, project, "post", "/api/llm/keys", {"name": "x", "scopes": ["manage"]}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "permission_denied")
    assert roles(project) == {"ada": "administrator", "eve": role}


def test_members__last_administrator__stays(project: Project, ada: User) -> None:
    path = f"{PATH}/{Membership.objects.get(user=ada).pk}"
    for answer in (ask(ada, project, "delete", path), ask(ada, project, "patch", path, {"role": "reader"})):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "last_administrator")
    key = APIClient(headers={"Authorization": f"Bearer {make_key(project)[1]}", "X-Project-Id": str(project.pk)})
    assert key.delete(path).status_code == 409
    assert roles(project) == {"ada": "administrator"}

    # An account that may not sign in any more administers nothing.
    gone = make_staff(Role.ADMINISTRATOR, project, name="gone")
    User.objects.filter(pk=gone.pk).update(is_active=False)
    assert ask(ada, project, "delete", path).status_code == 409
    make_staff(Role.ADMINISTRATOR, project, name="bob")
    assert ask(ada, project, "delete", path).status_code == 204
    assert ask(ada, project, "get").status_code == 403


def test_members__of_another_project__are_not_there(project: Project, ada: User) -> None:
    other = make_project()
    row = Membership.objects.create(project=other, user=make_staff(name="bob"), role=Role.READER)

    assert ask(ada, project, "patch", f"{PATH}/{row.pk}", {"role": "editor"}).status_code == 404
    assert ask(ada, project, "delete", f"{PATH}/{row.pk}").status_code == 404
    assert ask(ada, other, "get").status_code == 403


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"username": "nobody", "role": "reader"}, "username"),
        ({"username": "visitor", "role": "reader"}, "username"),
        ({"username": "ada", "role": "god"}, "role"),
        ({"role": "reader"}, "username"),
    ],
)
def test_add__bad_input__names_the_field(project: Project, ada: User, body: dict[str, str], field: str) -> None:
    User.objects.create_user("visitor")
    answer = ask(ada, project, "post", body=body)

    assert answer.status_code == 400
    assert field in answer.json()["error"]["details"]


def test_command__account_and_project__gets_the_role_and_changes_it(project: Project) -> None:
    make_staff(name="bob")
    for role in ("reader", "administrator", "editor"):
        output = io.StringIO()
        call_command("add_member", "bob", "--project", project.name, "--role", role, stdout=output)
        assert roles(project) == {"bob": role}
        assert "bob" in output.getvalue()


def test_command__nobody_or_nothing_of_that_name__says_so(project: Project) -> None:
    User.objects.create_user("visitor")
    for name, place in (("nobody", project.name), ("visitor", project.name), ("visitor", "no such project")):
        with pytest.raises(CommandError, match="There is no"):
            call_command("add_member", name, "--project", place, "--role", "reader")
