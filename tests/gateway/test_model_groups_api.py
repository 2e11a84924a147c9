"""`/api/llm/model-groups`: what a group may be, who may change it, and what the audit log has of it."""

from __future__ import annotations

from typing import Any

from rest_framework.test import APIClient

from core.models import AuditEntry, Project
from gateway.models import ModelGroupRow
from gateway.selectors import model_groups
from tests.tables.cases import tabled

PATH = "/api/llm/model-groups"
MEMBERS = [{"model": "openai/gpt-4o-mini", "weight": 3}, {"model": "anthropic/claude-haiku-4.5", "weight": 1}]
FAST: dict[str, Any] = {"name": "fast", "strategy": "weighted", "members": MEMBERS}


def test_groups__made__are_listed_read_and_in_the_snapshot(api: APIClient, project: Project) -> None:
    made = api.post(PATH, FAST)

    assert made.status_code == 201, made.json()
    assert {name: made.json()[name] for name in FAST} == FAST
    assert api.get(PATH).json()["results"] == [made.json()] == [api.get(f"{PATH}/fast").json()]
    assert model_groups(project.pk)["fast"].weights == {"openai/gpt-4o-mini": 3, "anthropic/claude-haiku-4.5": 1}


def test_group__weight_left_out__is_1(api: APIClient) -> None:
    made = api.post(PATH, {"name": "plain", "strategy": "ordered", "members": [{"model": "gpt-4o"}]})

    assert made.json()["members"] == [{"model": "gpt-4o", "weight": 1}]


def test_group__replaced__has_the_new_members_and_can_be_written_back(api: APIClient) -> None:
    shown = api.post(PATH, FAST).json()
    changed = api.put(f"{PATH}/fast", {**shown, "strategy": "ordered", "members": MEMBERS[:1]})

    assert changed.status_code == 200, changed.json()
    assert (changed.json()["strategy"], changed.json()["members"]) == ("ordered", MEMBERS[:1])
    assert api.get(f"{PATH}/fast").json() == changed.json()


def test_group__deleted__is_gone(api: APIClient) -> None:
    api.post(PATH, FAST)

    assert api.delete(f"{PATH}/fast").status_code == 204
    for answer in (api.get(f"{PATH}/fast"), api.put(f"{PATH}/fast", FAST), api.delete(f"{PATH}/fast")):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_group_not_found")


def test_group__name_taken__409(api: APIClient) -> None:
    api.post(PATH, FAST)
    again = api.post(PATH, FAST)

    assert (again.status_code, again.json()["error"]["code"]) == (409, "model_group_exists")


@tabled
def test_group__name_that_cannot_be__400_names_it(api: APIClient, name: Any, words: str) -> None:
    answer = api.post(PATH, {**FAST, "name": name})

    assert answer.status_code == 400
    assert words in answer.json()["error"]["details"]["name"][0]


@tabled
def test_group__invalid__400_names_the_field(api: APIClient, change: dict[str, Any]) -> None:
    (field,) = change
    answer = api.post(PATH, {**FAST, **change})

    assert answer.status_code == 400
    assert any(name.startswith(field) for name in answer.json()["error"]["details"])
    assert not ModelGroupRow.objects.exists()


def test_group__in_a_group__400_whichever_came_first(api: APIClient) -> None:
    api.post(PATH, FAST)
    outer = api.post(PATH, {**FAST, "name": "outer", "members": [{"model": "fast"}]})
    itself = api.put(f"{PATH}/fast", {"strategy": "ordered", "members": [{"model": "fast"}]})
    api.post(PATH, {**FAST, "name": "other", "members": [{"model": "later"}]})
    inner = api.post(PATH, {**FAST, "name": "later"})

    assert ["group" in answer.json()["error"]["details"]["members"][0] for answer in (outer, itself)] == [True, True]
    assert "other" in inner.json()["error"]["details"]["name"][0]


def test_changes__are_in_the_audit_log(api: APIClient, project: Project) -> None:
    api.post(PATH, FAST)
    api.put(f"{PATH}/fast", {"strategy": "ordered", "members": MEMBERS})
    api.delete(f"{PATH}/fast")

    entries = AuditEntry.objects.for_project(project.pk).order_by("id")
    assert [(entry.operation, entry.object_kind, entry.object_label, entry.action) for entry in entries] == [
        ("createModelGroup", "model group", "fast", "created"),
        ("replaceModelGroup", "model group", "fast", "changed"),
        ("deleteModelGroup", "model group", "fast", "deleted"),
    ]
    assert entries[1].changes == {"strategy": ["weighted", "ordered"]}
