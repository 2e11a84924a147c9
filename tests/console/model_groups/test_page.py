from __future__ import annotations

import pytest
from django.test import Client

from core.models import AuditEntry, Project
from core.roles import Role
from gateway.model_groups.services import MODEL_GROUPS
from tests.console.conftest import sent, shown, signed_in, text_of
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

PATH = "/admin/model-groups/"
MEMBERS = [{"model": "openai/gpt-4o-mini", "weight": 3}, {"model": "groq/llama-3.3-70b", "weight": 1}]


def make(project: Project) -> None:
    MODEL_GROUPS.create(project.pk, {"name": "fast", "strategy": "weighted", "members": MEMBERS})


def test_page__reader__sees_groups_and_no_form(project: Project) -> None:
    make(project)
    text = shown(signed_in(project, Role.READER), project, PATH)

    assert "openai/gpt-4o-mini (3), groq/llama-3.3-70b (1)" in text
    assert 'name="members"' not in text


def test_form__administrator__makes_changes_and_deletes(administrator: Client, project: Project) -> None:
    given = {"strategy": "weighted", "members": "openai/gpt-4o-mini 3\n\ngroq/llama-3.3-70b", "action": "save"}
    assert sent(administrator, project, PATH, name="fast", **given).status_code == 302
    assert MODEL_GROUPS.get(project.pk, "fast").members == MEMBERS

    assert "openai/gpt-4o-mini 3\ngroq/llama-3.3-70b 1" in shown(administrator, project, PATH, group="fast")
    path = f"{PATH}?project={project.pk}&group=fast"
    changed = {"strategy": "ordered", "members": "gpt-4o", "action": "save"}
    assert administrator.post(path, changed).status_code == 302
    assert MODEL_GROUPS.get(project.pk, "fast").members == [{"model": "gpt-4o", "weight": 1}]

    assert administrator.post(path, {"action": "delete"}).status_code == 302
    assert not MODEL_GROUPS.rows(project.pk).exists()
    actions = AuditEntry.objects.filter(object_kind="model group").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["created", "changed", "deleted"]


@tabled
def test_form__invalid__says_why(
    administrator: Client, project: Project, name: str, members: str, problem: str
) -> None:
    make(project)
    answer = sent(administrator, project, PATH, name=name, strategy="ordered", members=members, action="save")

    assert problem in text_of(answer)
    assert MODEL_GROUPS.rows(project.pk).count() == 1


def test_page__group_that_is_not_there__404(administrator: Client, project: Project) -> None:
    assert administrator.get(PATH, {"project": str(project.pk), "group": "none"}).status_code == 404
