from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from core.keys.services import find_key, hash_key
from core.models import ApiKey, Project
from core.signals import project_created
from tests.factories.core import make_key

ADD = "/admin/core/apikey/add/"


@pytest.fixture
def admin(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("root", password="long enough"))
    return client


def test_add_key__valid__shown_in_one_message_only(admin: Client, project: Project) -> None:
    form = {"project": str(project.pk), "name": "ci", "scopes": ["gateway"], "expires_at": ""}

    first = admin.post(ADD, form, follow=True).content.decode()

    found = re.search(r"svc_[A-Za-z0-9_-]{43}", first)
    assert found is not None
    record = find_key(hash_key(found.group()))
    assert record is not None
    assert record.scopes == {"gateway"}
    assert found.group() not in admin.get("/admin/core/apikey/").content.decode()


def test_add_key__name_alone__calls_models_and_nothing_else(admin: Client, project: Project) -> None:
    boxes = re.findall(r'<input type="checkbox" name="scopes" value="([^"]*)"([^>]*)>', admin.get(ADD).content.decode())

    admin.post(ADD, {"project": str(project.pk), "name": "ci"})

    assert [name for name, more in boxes if "checked" in more] == ["gateway"]
    assert ApiKey.objects.get().scopes == ["gateway"]


def test_add_key__bad_form__nothing_made(admin: Client, project: Project) -> None:
    form = {"project": str(project.pk), "name": "ci", "scopes": ["root"]}
    past = {**form, "scopes": ["gateway"], "expires_at": "2020-01-01T00:00"}
    for wrong in (form, past):
        assert admin.post(ADD, wrong).status_code == 200
    assert not ApiKey.objects.exists()


def test_key_pages__list_and_detail__no_hash(admin: Client, project: Project) -> None:
    row, _ = make_key(project)
    for path in ("/admin/core/apikey/", f"/admin/core/apikey/{row.pk}/change/"):
        page = admin.get(path).content.decode()
        assert row.prefix in page
        assert row.key_hash not in page


def test_change_key__posted_scopes__only_the_name_changes(admin: Client, project: Project) -> None:
    row, _ = make_key(project, ["gateway"])
    admin.post(f"/admin/core/apikey/{row.pk}/change/", {"name": "renamed", "scopes": ["manage"]})
    row.refresh_from_db()
    assert (row.name, row.scopes) == ("renamed", ["gateway"])


def test_revoke_action__selected__revoked(admin: Client, project: Project) -> None:
    row, key = make_key(project)
    admin.post("/admin/core/apikey/", {"action": "revoke", "_selected_action": [row.pk]})
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert row.revoked_at <= timezone.now()
    assert find_key(hash_key(key)) is None


def test_add_project__valid__announced(admin: Client) -> None:
    received: list[str] = []

    def listen(project: Project, **_: object) -> None:
        received.append(project.name)

    project_created.connect(listen, weak=False, dispatch_uid="test")
    try:
        admin.post("/admin/core/project/add/", {"name": "shop"})
    finally:
        project_created.disconnect(dispatch_uid="test")

    assert received == ["shop"]
    page = admin.get(f"/admin/core/project/{Project.objects.get().pk}/change/")
    assert page.status_code == 200
