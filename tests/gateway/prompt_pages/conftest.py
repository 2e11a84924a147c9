from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from core.models import Project
from core.roles import Role
from prompts.models import PromptConfig
from tests.factories.core import make_project, make_staff
from tests.factories.prompts import make_config, make_version


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def editor(client: Client, project: Project) -> Client:
    client.force_login(make_staff(Role.EDITOR, project, name="ann"))
    return client


@pytest.fixture
def config(project: Project) -> PromptConfig:
    """A prompt with two versions, the first of them active."""
    config = make_config(project, "support")
    make_version(config, "Help {{ user }} kindly.", variables=[{"name": "user", "required": True}])
    make_version(config, "Help {{ user }} quickly.", variables=[{"name": "user"}], commit_message="Be quick")
    config.refresh_from_db()
    return config


def text_of(answer: Any) -> str:
    """Returns the text of a page that must have been shown."""
    assert answer.status_code == 200, answer
    return b"".join(answer.streaming_content).decode() if answer.streaming else answer.content.decode()


def shown(client: Client, path: str, project: Project, **query: Any) -> str:
    return text_of(client.get(path, {"project": str(project.pk), "range": "24h", **query}))
