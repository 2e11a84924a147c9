from __future__ import annotations

from itertools import pairwise

import pytest
from django.contrib.auth.models import User
from django.test import Client

from core.models import Project
from core.roles import RIGHTS_OF, Right, Role
from tests.factories.core import make_project, make_staff
from tests.night import NIGHT
from tests.openapi.conftest import Populated, offline, populated, rows

__all__ = ["Populated", "offline", "populated", "rows"]

PEOPLE = [*Role, "superuser", "nobody"]
"""Every role in the populated project, with no role in the other one; and a member of staff without any."""


@pytest.fixture
def own(populated: Populated) -> Project:
    return Project.objects.get(pk=populated.known["project_id"])


@pytest.fixture
def other(db: None) -> Project:
    return make_project("somebody else's")


def person(who: str, project: Project) -> User:
    if who == "superuser":
        return User.objects.create_superuser("root")
    return make_staff(None if who == "nobody" else Role(who), project)


def signed_in(user: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def opened_below(who: str, right: Right) -> bool:
    """By day these people are not asked if the role below may do it too, and is asked. The night asks all."""
    below = {role: lower for lower, role in pairwise(Role)} | {"superuser": Role.ADMINISTRATOR}
    return not NIGHT and who in below and right in RIGHTS_OF[below[who]]
