from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from core.models import Project
from tests.factories.core import client_of, make_project


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def api(project: Project) -> APIClient:
    """A client with a key of `project`."""
    return client_of(project)
