"""A project, people with roles in it, and what a page shows."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.test import Client

from core.models import Project
from core.roles import Role
from tests.factories.core import make_project, make_staff

Open = Callable[..., str]


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def administrator(project: Project) -> Client:
    return signed_in(project, Role.ADMINISTRATOR)


def signed_in(project: Project, role: Role) -> Client:
    client = Client()
    client.force_login(make_staff(role, project))
    return client


def shown(client: Client, project: Project, path: str, **query: Any) -> str:
    """Returns the text of a page, which has to be there."""
    return text_of(client.get(path, {"project": str(project.pk), **query}))


def sent(client: Client, project: Project, path: str, **values: Any) -> Any:
    return client.post(f"{path}?project={project.pk}", values)


def text_of(answer: Any) -> str:
    assert answer.status_code == 200, answer.content
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return unescape(content.decode())
