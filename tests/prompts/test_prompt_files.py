from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from core.models import Project
from prompts.models import PromptConfig
from tests.factories.prompts import make_config, make_version
from tests.prompts.paths import config_path
from tests.tables.cases import tabled

FIELDS = {"model": "gpt-4o", "temperature": 0.5, "system_prompt": "You help.\nBe kind."}


@pytest.fixture
def config(project: Project) -> PromptConfig:
    made = make_config(project)
    make_version(made)
    return made


def push(api: APIClient, config: PromptConfig, name: str, text: str) -> Any:
    return api.post(config_path(config.pk, "versions", "from-file"), {"name": name, "text": text}, format="json")


@tabled
def test_push__each_form__makes_a_version_that_is_not_active(
    api: APIClient, config: PromptConfig, name: str, text: str
) -> None:
    found = push(api, config, name, text)

    assert found.status_code == 201, found.content
    shown = found.json()
    assert {field: shown[field] for field in FIELDS} == FIELDS
    assert (shown["version_number"], shown["is_active"]) == (2, False)
    # The same content in another form, and another commit message, makes no version.
    again = push(api, config, "again.json", json.dumps({**FIELDS, "commit_message": "Again"}))
    assert (again.status_code, again.json()["id"]) == (200, shown["id"])
    assert config.versions.count() == 2


def test_push__content_of_several_versions__is_the_active_one(api: APIClient, config: PromptConfig) -> None:
    first = push(api, config, "a.md", "Be brief.").json()
    make_version(config, system_prompt="Be brief.")
    newest = push(api, config, "a.md", "Be brief.").json()
    assert newest["version_number"] == 3

    api.post(config_path(config.pk, "versions", first["id"], "activate"), {}, format="json")

    assert push(api, config, "a.md", "Be brief.").json()["id"] == first["id"]


@tabled
def test_push__file_that_is_wrong__names_the_place(
    api: APIClient, config: PromptConfig, name: str, text: str, problem: str
) -> None:
    found = push(api, config, name, text)

    assert found.status_code == 400
    assert problem in found.json()["error"]["message"], found.json()
    assert config.versions.count() == 1
