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
    """A client with a key of `project`."""
    return client_of(project)


def client_of(project: Project) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {make_key(project)[1]}", HTTP_X_PROJECT_ID=str(project.pk))
    return client
