from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from core.models import Project
from tests.factories.core import make_key


@pytest.fixture
def headers(project: Project) -> dict[str, str]:
    return headers_for(project, make_key(project, ["manage"])[1])


@pytest.fixture
def api() -> APIClient:
    return APIClient(raise_request_exception=False)


@pytest.fixture
def as_staff(api: APIClient, django_user_model: Any) -> Callable[..., APIClient]:
    def sign_in(*, is_staff: bool = True) -> APIClient:
        user = django_user_model.objects.create_user(
            username="ada", password="long enough", is_staff=is_staff, is_superuser=is_staff
        )
        client = APIClient(enforce_csrf_checks=True, raise_request_exception=False)
        client.force_login(user)
        return client

    return sign_in


def headers_for(project: Project, key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "X-Project-Id": str(project.pk)}
