from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from core.models import AuditEntry, Project
from core.roles import Role
from prompts.labels import remove_label, set_label
from prompts.models import PromptConfig, PromptLabel, PromptLabelMove
from tests.factories.core import make_staff
from tests.factories.prompts import make_config

pytestmark = pytest.mark.django_db


@pytest.fixture
def config(project: Project) -> PromptConfig:
    return make_config(project, versions=3)


def path(config: PromptConfig, rest: str = "labels") -> str:
    return f"/api/llm/prompts/configs/{config.pk}/{rest}"


def put(api: APIClient, config: PromptConfig, name: str, number: int, **body: Any) -> Any:
    return api.put(path(config, f"labels/{name}"), {"version_number": number, **body}, format="json")


def moves(api: APIClient, config: PromptConfig, query: str = "") -> list[tuple[Any, ...]]:
    rows = api.get(path(config, f"label-moves{query}")).json()["results"]
    return [(row["label"], row["from_version"], row["to_version"], row["reason"]) for row in rows]


def test_label__made_moved_and_removed__has_its_history(api: APIClient, config: PromptConfig) -> None:
    made = put(api, config, "production", 1)
    put(api, config, "staging", 3)
    moved = put(api, config, "production", 2, reason="better")
    put(api, config, "production", 2, reason="once more")
    removed = api.delete(path(config, "labels/staging?reason=unused"))

    assert (made.status_code, moved.status_code, removed.status_code) == (200, 200, 204), made.content
    [label] = api.get(path(config)).json()["results"]
    assert (label["name"], label["version_number"], label["is_protected"]) == ("production", 2, False)
    assert label["version_id"] == str(config.versions.get(number=2).pk)
    assert moves(api, config) == [
        ("staging", 3, None, "unused"),
        ("production", 1, 2, "better"),
        ("staging", None, 3, ""),
        ("production", None, 1, ""),
    ]
    assert len(moves(api, config, "?label=staging")) == 2
    assert PromptLabelMove.objects.exclude(actor__startswith="key:").count() == 0
    assert AuditEntry.objects.filter(operation="putPromptLabel").exists()


@pytest.mark.parametrize("name", ["latest", "active", "3", "Production", "a b", "@x", "x" * 51, "-x"])
def test_label__of_a_wrong_name__is_refused(api: APIClient, config: PromptConfig, name: str) -> None:
    response = put(api, config, name, 1)

    assert response.status_code == 400, response.content
    assert "label" in response.json()["error"]["details"]
    assert not PromptLabel.objects.exists()


def test_label__on_a_version_that_is_not_there__404(api: APIClient, config: PromptConfig) -> None:
    assert api.put(path(config, "labels/x"), {"version_number": 9}, format="json").status_code == 404


def test_label__unknown__cannot_be_removed(api: APIClient, config: PromptConfig) -> None:
    response = api.delete(path(config, "labels/x"))

    assert (response.status_code, response.json()["error"]["code"]) == (404, "prompt_label_not_found")


def test_protected_label__editor__cannot_touch_it(project: Project, api: APIClient, config: PromptConfig) -> None:
    assert put(api, config, "production", 1, is_protected=True).json()["is_protected"] is True
    editor = APIClient(headers={"X-Project-Id": str(project.pk)})
    editor.force_login(make_staff(Role.EDITOR, project))

    refused = [
        put(editor, config, "production", 2),
        put(editor, config, "production", 1, is_protected=False),
        editor.delete(path(config, "labels/production")),
        put(editor, config, "staging", 1, is_protected=True),
    ]

    assert {(one.status_code, one.json()["error"]["code"]) for one in refused} == {(403, "prompt_label_protected")}
    assert put(editor, config, "staging", 1).status_code == 200
    # An administrator moves it, and it stays protected.
    assert put(api, config, "production", 2).json()["is_protected"] is True


def test_label__config_deleted__goes_with_it(project: Project, api: APIClient, config: PromptConfig) -> None:
    put(api, config, "production", 1)
    put(api, config, "production", 2)

    assert api.delete(f"/api/llm/prompts/configs/{config.pk}").status_code == 204
    assert not PromptLabel.objects.exists()
    assert not PromptLabelMove.objects.exists()


def test_services__without_an_api__say_the_same(project: Project, config: PromptConfig) -> None:
    given: dict[str, Any] = {"project_id": project.pk, "config_id": config.pk, "name": "x", "actor": "a"}
    set_label(**given, number=1, is_administrator=False)
    remove_label(**given, is_administrator=False)

    assert not PromptLabel.objects.exists()
    with pytest.raises(TypeError, match="never changed"):
        PromptLabelMove.objects.latest("id").save()
