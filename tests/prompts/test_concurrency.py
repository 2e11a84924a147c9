from __future__ import annotations

from collections import Counter
from typing import TypedDict
from uuid import UUID

import pytest

from core.models import Project
from prompts.content.version import VersionContent
from prompts.models import PromptActivation, PromptConfig, PromptVersion
from prompts.services import activate_version, add_version, create_config, delete_config, undo_activation
from prompts.transfer import ImportedConfig, NumberedContent, import_prompts
from tests.at_once import at_once
from tests.factories.core import make_project
from tests.factories.prompts import make_config

pytestmark = pytest.mark.django_db(transaction=True)

CALLERS = 8


class Ids(TypedDict):
    project_id: UUID
    config_id: UUID


def ids(config: PromptConfig) -> Ids:
    return {"project_id": config.project_id, "config_id": config.pk}


def test_add_version__at_once__distinct_numbers_and_one_activation() -> None:
    config = make_config()
    made = at_once(CALLERS, lambda n: add_version(**ids(config), content=VersionContent(f"v{n}"), actor="").number)
    assert sorted(made) == list(range(1, CALLERS + 1))
    config.refresh_from_db()
    assert config.last_version_number == CALLERS
    assert PromptActivation.objects.filter(config=config).count() == 1
    assert config.active_version is not None and config.active_version.number == 1


def test_create_config__same_name_at_once__one_wins() -> None:
    project: Project = make_project()
    results = at_once(CALLERS, lambda _: create_config(project_id=project.pk, name="greeter").name)
    assert Counter(results) == {"greeter": 1, "prompt_config_exists": CALLERS - 1}


def test_activate__at_once__history_is_one_unbroken_line() -> None:
    config = make_config(versions=CALLERS)
    versions = list(PromptVersion.objects.filter(config=config).order_by("number"))
    at_once(CALLERS, lambda n: activate_version(**ids(config), version_id=versions[n].pk, actor=str(n)))
    rows = list(PromptActivation.objects.filter(config=config).order_by("id"))
    assert [row.from_version_id for row in rows[1:]] == [row.to_version_id for row in rows[:-1]]
    config.refresh_from_db()
    assert config.active_version_id == rows[-1].to_version_id


def test_undo__at_once__each_move_is_taken_back_once() -> None:
    config = make_config(versions=4)
    for version in PromptVersion.objects.filter(config=config, number__gt=1).order_by("number"):
        activate_version(**ids(config), version_id=version.pk, actor="")
    results = at_once(CALLERS, lambda _: undo_activation(**ids(config), actor="").to_version.number)
    assert Counter(results) == {3: 1, 2: 1, 1: 1, "nothing_to_undo": CALLERS - 3}
    config.refresh_from_db()
    assert config.active_version is not None and config.active_version.number == 1


def test_delete_and_add_version__at_once__nothing_is_left_over() -> None:
    config = make_config(versions=1)

    def call(number: int) -> str:
        if number == 0:
            delete_config(**ids(config))
            return "deleted"
        add_version(**ids(config), content=VersionContent("x"), actor="")
        return "added"

    results = Counter(at_once(CALLERS, call))
    assert results["deleted"] == 1
    assert results["added"] + results["prompt_config_not_found"] == CALLERS - 1
    assert not PromptVersion.objects.exists()


def test_import__at_once__every_version_once() -> None:
    project = make_project()
    make_config(project, "there", versions=1)
    versions = [NumberedContent(n, VersionContent(f"v{n}")) for n in (1, 2)]
    configs = [ImportedConfig(name, "", 2, versions) for name in ("new", "there")]
    results = at_once(
        CALLERS, lambda _: len(import_prompts(project_id=project.pk, configs=configs, actor="", is_administrator=True))
    )
    assert set(results) <= {2, "prompt_config_exists"}
    assert 2 in results
    found = PromptVersion.objects.values_list("config__name", "system_prompt").order_by("config__name", "number")
    assert list(found) == [("new", "v1"), ("new", "v2"), ("there", "Be helpful."), ("there", "v1"), ("there", "v2")]
