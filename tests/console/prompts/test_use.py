from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from core.models import Project
from core.roles import Role
from prompts.labels import set_label
from prompts.models import PromptConfig
from tests.console.conftest import shown, signed_in
from tests.factories.prompts import make_config, make_version
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


@pytest.fixture
def editor(project: Project) -> Client:
    return signed_in(project, Role.EDITOR)


@pytest.fixture
def support(project: Project) -> PromptConfig:
    config = make_config(project, "support")
    make_version(config, "Help {{ user_name }}.", variables=[{"name": "user_name"}])
    variables = [{"name": "user_name"}, {"name": "age", "type": "number"}, {"name": "known", "type": "boolean"}]
    make_version(config, "Help {{ user_name }}, {{ age }}, {{ known }}.", variables=variables)
    label: dict[str, Any] = {"name": "staging", "number": 2, "actor": "user:ann", "is_administrator": False}
    set_label(project_id=project.pk, config_id=config.pk, **label)
    config.refresh_from_db()
    return config


def use_of(client: Client, config: PromptConfig, **query: str) -> str:
    return shown(client, config.project, f"/admin/prompts/{config.pk}/", **query)


@tabled
def test_use__label_or_version__named_with_its_variables(
    editor: Client, support: PromptConfig, query: dict[str, str], fields: str
) -> None:
    assert f"extra_body={fields}," in use_of(editor, support, **query)


@pytest.mark.parametrize("use", ["production", "99", "<b>"])
def test_use__label_that_is_not_there__said_and_the_active_one_shown(
    editor: Client, support: PromptConfig, use: str
) -> None:
    text = use_of(editor, support, use=use)

    assert f"There is no label or version {use} here." in text
    assert '"prompt_config": "support",' in text


def test_use__prompt_without_a_version__no_box(editor: Client, project: Project) -> None:
    assert "Use it" not in use_of(editor, make_config(project, "planned"))


def test_use__who_may_not_make_keys__sees_what_to_ask_for(editor: Client, support: PromptConfig) -> None:
    assert "Please make an API key" in use_of(editor, support)
