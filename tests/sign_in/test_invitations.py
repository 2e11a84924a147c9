"""An invitation leads a person into a project once: by its link, or by a sign-in with its address."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from pytest_django import Settings

from core.models import AuditEntry, Invitation, Membership, Project
from core.roles import Role
from core.sign_in.providers import Provider
from tests.console.conftest import sent, shown, signed_in
from tests.factories.core import client_of, make_staff
from tests.sign_in import steps
from tests.sign_in.fake import FakeProvider
from tests.sign_in.steps import text_of

pytestmark = pytest.mark.django_db

PATH = "/admin/members/"
GIVEN = {"username": "bea", "password1": "a-long-Password-7", "password2": "a-long-Password-7"}


def invited(project: Project, address: str = "Bea@example.com") -> str:
    """Invites on the page of members, and returns the path of the link."""
    answer = sent(signed_in(project, Role.ADMINISTRATOR), project, PATH, action="add", username=address, role="editor")
    found = re.search(r'<pre id="new-link">[^<]*(/admin/invitation/[^<]+)</pre>', text_of(answer))
    assert found
    return found[1]


def roles(name: str) -> list[str]:
    return list(Membership.objects.filter(user__username=name).values_list("role", flat=True))


def test_invitation__sent_and_opened__ends_in_an_account_with_the_role(project: Project) -> None:
    link = invited(project)
    [letter] = mail.outbox
    assert (letter.to, link in letter.body) == (["bea@example.com"], True)
    assert "bea@example.com" in shown(signed_in(project, Role.ADMINISTRATOR), project, PATH)

    guest = Client()
    assert f"invited to the project {project.name} as editor" in text_of(guest.get(link))
    assert "too short" in text_of(guest.post(link, {**GIVEN, "password1": "short", "password2": "short"}))
    assert roles("bea") == []

    joined = guest.post(link, GIVEN)

    assert (joined.status_code, joined["Location"]) == (302, f"/admin/?project={project.pk}")
    assert roles("bea") == ["editor"]
    assert User.objects.get(username="bea").email == ""
    assert guest.get(joined["Location"]).status_code == 200
    assert Client().get(link).status_code == 404
    made = set(AuditEntry.objects.values_list("object_kind", "actor_name"))
    assert {("account", "bea"), ("member", "bea"), ("sign-in", "bea"), ("invitation", "bea")} <= made


def test_invitation__opened_by_somebody_signed_in__is_joined_by_one_press(project: Project) -> None:
    link, client = invited(project), Client()
    client.force_login(make_staff(name="cleo"))

    assert "Join as cleo" in text_of(client.get(link))
    assert client.post(link).status_code == 302

    assert roles("cleo") == ["editor"]
    assert client.post(link).status_code == 404


@pytest.mark.parametrize("is_verified", [True, False])
def test_role__of_an_invitation__waits_for_the_first_sign_in_with_the_verified_address(
    fake: FakeProvider, company: Provider, project: Project, is_verified: bool
) -> None:
    link = invited(project)
    Invitation.objects.update(expires_at=Invitation.objects.get().created_at - timedelta(days=1))
    assert Client().get(link).status_code == 404
    fake.claims = {"preferred_username": "bea", "email": "bea@EXAMPLE.com", "email_verified": is_verified}

    steps.signed_in(Client(), fake)

    assert roles("bea") == (["editor"] if is_verified else [])
    assert Invitation.objects.exists() is not is_verified


def test_invitation__without_local_logins__leads_to_the_provider(
    fake: FakeProvider, company: Provider, project: Project, settings: Settings
) -> None:
    link = invited(project)
    settings.LOCAL_LOGIN = False

    text = text_of(Client().get(link))

    assert "Sign in with Company" in text and "password" not in text
    assert Client().post(link, GIVEN).status_code == 200
    assert not User.objects.filter(username="bea").exists()


def test_invitation__taken_back_or_renewed__its_link_is_dead(project: Project) -> None:
    first, second = invited(project), invited(project, "bea@example.com")
    assert (Client().get(first).status_code, Client().get(second).status_code) == (404, 200)
    row = Invitation.objects.get()

    assert (
        sent(signed_in(project, Role.ADMINISTRATOR), project, PATH, action="revoke", invitation=row.pk).status_code
        == 302
    )

    assert Client().get(second).status_code == 404


def test_invitations__over_the_api__made_listed_and_taken_back(project: Project) -> None:
    api: Any = client_of(project)
    body = {"email": "bea@example.com", "role": "reader"}

    made = api.post("/api/llm/invitations", body, format="json")

    assert made.status_code == 201
    assert made.json()["is_sent"] is True
    assert Client().get(urlsplit(made.json()["link"]).path).status_code == 200
    [listed] = api.get("/api/llm/invitations").json()["results"]
    assert "link" not in listed
    assert api.delete(f"/api/llm/invitations/{listed['id']}").status_code == 204
    assert api.get("/api/llm/invitations").json()["count"] == 0
    bad = api.post("/api/llm/invitations", {**body, "email": "bea"}, format="json")
    assert (bad.status_code, set(bad.json()["error"]["details"])) == (400, {"email"})
