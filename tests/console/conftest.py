from __future__ import annotations

from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from core.models import Project
from core.roles import Role
from core.ui import panels
from prompts.models import PromptConfig
from tests.factories.core import make_staff
from tests.factories.prompts import make_config, make_version
from tests.waiting import TIMEOUT_SECONDS

Open = Callable[..., str]


@pytest.fixture
def administrator(project: Project) -> Client:
    return signed_in(project, Role.ADMINISTRATOR)


@pytest.fixture(autouse=True)
def store_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "FIRST_BYTE_SECONDS", TIMEOUT_SECONDS)


@pytest.fixture(autouse=True)
def nothing_waits(tmp_path: Path, settings: Settings) -> None:
    """The suite's spool may have records that wait, of which pages tell."""
    settings.SPOOL_DIR = tmp_path / "empty-spool"


@pytest.fixture
def reader(client: Client, project: Project) -> Client:
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, project))
    return client


@pytest.fixture
def editor(client: Client, project: Project) -> Client:
    client.force_login(make_staff(Role.EDITOR, project, name="ann"))
    return client


@pytest.fixture
def config(project: Project) -> PromptConfig:
    config = make_config(project, "support")
    make_version(config, "Help {{ user }} kindly.", variables=[{"name": "user", "required": True}])
    make_version(config, "Help {{ user }} quickly.", variables=[{"name": "user"}], commit_message="Be quick")
    config.refresh_from_db()
    return config


def signed_in(project: Project, role: Role) -> Client:
    client = Client()
    client.force_login(make_staff(role, project))
    return client


def shown(client: Client, project: Project, path: str, **query: Any) -> str:
    return text_of(client.get(path, {"project": str(project.pk), **query}))


def sent(client: Client, project: Project, path: str, **values: Any) -> Any:
    return client.post(f"{path}?project={project.pk}", values)


def text_of(answer: Any) -> str:
    assert answer.status_code == 200, answer.content
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return unescape(content.decode())
