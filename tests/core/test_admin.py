from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from core.models import Project
from core.signals import project_created
from tests.factories.core import make_key


@pytest.fixture
def admin(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("root", password="long enough"))
    return client


def test_key_pages__list_and_detail__no_hash(admin: Client, project: Project) -> None:
    row, _ = make_key(project)
    for path in ("/admin/core/apikey/", f"/admin/core/apikey/{row.pk}/change/"):
        page = admin.get(path).content.decode()
        assert row.prefix in page
        assert row.key_hash not in page


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
