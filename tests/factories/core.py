from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import count
from typing import Any

from django.contrib.auth.models import User
from rest_framework.test import APIClient

from core.keys.services import hash_key, issue_key
from core.models import ApiKey, Membership, Project
from core.rights.scopes import SCOPES
from core.roles import Role

_serial = count(1)


def make_project(name: str | None = None) -> Project:
    return Project.objects.create(name=name or f"project-{next(_serial)}")


def make_key(
    project: Project,
    scopes: Iterable[str] = SCOPES,
    *,
    name: str = "test",
    expires_at: datetime | None = None,
    revoked_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """Unlike `issue_key` it takes an expiry in the past."""
    row, key = issue_key(project, name=name, scopes=scopes)
    if expires_at is not None or revoked_at is not None:
        row.expires_at, row.revoked_at = expires_at, revoked_at
        row.save(update_fields=["expires_at", "revoked_at"])
    assert row.key_hash == hash_key(key)
    return row, key


def make_staff(role: Role | None = None, *projects: Project, name: str | None = None) -> User:
    user = User.objects.create_user(name or f"person-{next(_serial)}", is_staff=True)
    if role is not None:
        Membership.objects.bulk_create(Membership(project=project, user=user, role=role) for project in projects)
    return user


def client_of(project: Project, named: Project | None = None, **key: Any) -> APIClient:
    """The client names `named`, by default `project`.

    A defect of the server is a 500 to it, not an exception of the test.
    """
    headers = {"HTTP_AUTHORIZATION": f"Bearer {make_key(project, **key)[1]}"}
    client = APIClient(raise_request_exception=False)
    client.credentials(**headers, HTTP_X_PROJECT_ID=str((named or project).pk))
    return client
