from __future__ import annotations

from uuid import UUID

import pytest
from rest_framework.test import APIClient

from core.models import Project
from tests.factories.core import client_of, make_project

BASE = "/api/llm/prompts"


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def api(project: Project) -> APIClient:
    """A client with a key of `project`."""
    return client_of(project)


def config_path(config_id: UUID | str, *rest: object) -> str:
    return "/".join([f"{BASE}/configs/{config_id}", *map(str, rest)])
