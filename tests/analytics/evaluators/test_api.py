"""Evaluators over HTTP: made, changed by versions, archived; rights and bad input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from analytics.evaluators.errors import EvaluatorVersionNotFoundError
from analytics.evaluators.selectors import get_version
from core.models import AuditEntry, Project
from core.roles import Role
from tests.factories.core import make_staff
from tests.rights.conftest import signed_in

pytestmark = pytest.mark.django_db

PATH = "/api/llm/evaluators"
GREETS = {"name": "greets", "kind": "contains", "definition": {"value": "hello"}}


class Member:
    """A person of the project who calls the API."""

    def __init__(self, role: Role, project: Project) -> None:
        self._client: Client = signed_in(make_staff(role, project, name=str(role)))
        self._project = project

    def ask(self, method: str, path: str = PATH, body: Any = None, expected: int = 200) -> Any:
        answer = self._client.generic(
            method, path, json.dumps(body or {}), "application/json", headers={"X-Project-Id": str(self._project.pk)}
        )
        assert answer.status_code == expected, answer.content
        return answer.json()


@pytest.fixture
def editor(project: Project) -> Member:
    return Member(Role.EDITOR, project)


def test_evaluator__made__is_listed_with_its_version(editor: Member) -> None:
    made = editor.ask("POST", PATH, {**GREETS, "description": "Says hello.", "good_from": 1}, 201)

    assert (made["version"], made["state"], made["asks_a_model"], made["good_from"]) == (1, "active", False, 1)
    assert made["definition"] == {"value": "hello", "ignore_case": True, "negated": False}
    assert editor.ask("GET")["results"] == [made] == [editor.ask("GET", f"{PATH}/{made['id']}")]
    assert editor.ask("GET", f"{PATH}?kind=judge")["results"] == []


def test_version__other_definition__is_the_next_and_the_former_stays(editor: Member, project: Project) -> None:
    made = editor.ask("POST", PATH, GREETS, 201)
    changed = editor.ask("POST", f"{PATH}/{made['id']}/versions", {"definition": {"value": "hi"}}, 201)

    assert [version["number"] for version in changed["versions"]] == [2, 1]
    assert changed["definition"]["value"] == "hi"
    assert get_version(project.pk, made["id"], 1).definition != get_version(project.pk, made["id"]).definition
    assert get_version(project.pk, made["id"]).title == "greets@2"
    with pytest.raises(EvaluatorVersionNotFoundError):
        get_version(project.pk, made["id"], 3)


def test_version__the_same_definition__makes_none(editor: Member) -> None:
    made = editor.ask("POST", PATH, GREETS, 201)

    assert editor.ask("POST", f"{PATH}/{made['id']}/versions", {"definition": {"value": "hello"}}, 201)["version"] == 1


def test_change__name_and_state__are_kept_and_audited(editor: Member) -> None:
    made = editor.ask("POST", PATH, GREETS, 201)
    changed = editor.ask("PATCH", f"{PATH}/{made['id']}", {"name": "welcomes", "state": "archived"})

    assert (changed["name"], changed["state"], changed["version"]) == ("welcomes", "archived", 1)
    assert editor.ask("GET", f"{PATH}?state=active")["results"] == []
    kinds = set(AuditEntry.objects.values_list("object_kind", flat=True))
    assert {"evaluator", "evaluator version"} <= kinds


@pytest.mark.parametrize(
    ("fields", "status", "code", "named"),
    [
        ({"definition": {"value": 5}}, 400, "invalid_value", "definition.value"),
        ({"name": "taken"}, 409, "evaluator_exists", "name"),
    ],
)
def test_create__bad_input__is_named(
    editor: Member, fields: dict[str, Any], status: int, code: str, named: str
) -> None:
    editor.ask("POST", PATH, {**GREETS, "name": "taken"}, 201)
    error = editor.ask("POST", PATH, {**GREETS, **fields}, status)["error"]

    assert error["code"] == code and error["message"].startswith(named)
    assert len(editor.ask("GET")["results"]) == 1
