from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from core.models import Project
from tests.factories.core import make_key, make_project


@pytest.fixture
def other(db: None) -> Project:
    return make_project()


def headers_for(project: Project, *, scopes: tuple[str, ...] = ("manage",)) -> dict[str, str]:
    _, key = make_key(project, scopes)
    return {"Authorization": f"Bearer {key}", "X-Project-Id": str(project.pk)}


@pytest.fixture
def headers(project: Project) -> dict[str, str]:
    return headers_for(project)


@pytest.fixture
def api() -> APIClient:
    return APIClient(raise_request_exception=False)
