from __future__ import annotations

import pytest

from core.audit.actors import actor_names
from core.models import Project
from tests.factories.core import make_key

pytestmark = pytest.mark.django_db


def test_names__each_kind_of_actor__as_people_know_it(project: Project) -> None:
    key = make_key(project, name="deploy")[0]
    actors = [f"key:{key.pk}", "key:999999999", "user:ann:b", "command:demo", "auto", ""]
    assert actor_names(actors) == {
        f"key:{key.pk}": "deploy (key)",
        "key:999999999": "a deleted key",
        "user:ann:b": "ann:b",
        "command:demo": "demo (command)",
        "auto": "auto",
        "": "",
    }
