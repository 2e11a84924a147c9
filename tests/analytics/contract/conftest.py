from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from core.models import Project
from tests.factories.core import make_key, make_project


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def api(project: Project) -> APIClient:
    return client_of(project)


def client_of(project: Project, named: Project | None = None) -> APIClient:
    """With a key of `project`, and the header of `named`. A defect is a 500 to it, and not an exception of the test."""
    client = APIClient(raise_request_exception=False)
    client.credentials(
        HTTP_AUTHORIZATION=f"Bearer {make_key(project)[1]}", HTTP_X_PROJECT_ID=str((named or project).pk)
    )
    return client
