from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from prompts.models import PromptConfig, PromptVersion
from prompts.services import activate_version
from tests.factories.prompts import make_config, make_version

pytestmark = pytest.mark.django_db

CONFIGS = "/admin/prompts/promptconfig/"
VERSIONS = "/admin/prompts/promptversion/"


def page(client: Client, path: str, **query: Any) -> str:
    response = client.get(path, query)
    assert response.status_code == 200, response.content
    return response.content.decode()


@pytest.fixture
def config() -> PromptConfig:
    config = make_config(name="greeter", versions=1)
    second = make_version(config, "Line <b>one</b>\n{{ name }}", commit_message="<i>why</i>", temperature=0.5)
    activate_version(project_id=config.project_id, config_id=config.pk, version_id=second.pk, actor="ada")
    config.refresh_from_db()
    return config


def test_lists__configs_versions_activations__shown(admin_client: Client, config: PromptConfig) -> None:
    make_config(config.project, "empty")

    assert "version 2" in page(admin_client, CONFIGS)
    assert "empty" not in page(admin_client, CONFIGS, q="greet").partition("<tbody>")[2]
    assert "&lt;i&gt;why&lt;/i&gt;" in page(admin_client, VERSIONS, q="greeter")
    history = page(admin_client, "/admin/prompts/promptactivation/", q="greeter")
    assert "Activated" in history and "ada" in history


def test_version__page__shown_as_text(admin_client: Client, config: PromptConfig) -> None:
    version = PromptVersion.objects.get(config=config, number=2)

    assert "Line &lt;b&gt;one&lt;/b&gt;\n{{ name }}" in page(admin_client, f"{VERSIONS}{version.pk}/change/")
