"""Several integrations of one provider, over the management API and in the rows of the previous release."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from core.models import Project
from integrations.models import ProviderIntegration
from integrations.selectors import disabled_providers, read_deployments
from tests.factories.core import client_of
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

PATH = "/api/llm/integrations"
KEY = "sk-secret-0123456789"
EU = {
    "name": "openai-eu",
    "provider": "openai",
    "api_key": KEY,
    "weight": 20,
    "priority": 3,
    "rpm": 60,
    "tpm": 9000,
    "models": [{"model": "gpt-4o", "deployment": "my-gpt4o-eu"}, {"model": "gpt-4o-mini"}],
    "prices": [{"model": "gpt-4o", "input_cost_per_1m": "2.20", "output_cost_per_1m": 8}],
}


def test_post__second_of_a_provider__both_listed_and_changed_by_name(project: Project) -> None:
    client = client_of(project)
    assert client.post(PATH, {"provider": "openai", "api_key": KEY}).json()["name"] == "openai"
    created = client.post(PATH, EU)
    assert created.status_code == 201, created.content
    assert [row["name"] for row in client.get(PATH).json()["results"]] == ["openai", "openai-eu"]

    shown = client.get(PATH).json()["results"][1]
    assert (shown["provider"], shown["weight"], shown["priority"], shown["rpm"]) == ("openai", 20, 3, 60)
    assert shown["models"] == [
        {"model": "gpt-4o", "deployment": "my-gpt4o-eu"},
        {"model": "gpt-4o-mini", "deployment": "gpt-4o-mini"},
    ]
    assert shown["prices"][0]["input_cost_per_1m"] == "2.2"

    written_back = client.put(f"{PATH}/openai-eu", {**shown, "rpm": None, "weight": 0})
    assert written_back.status_code == 200, written_back.content
    changed = written_back.json()
    assert (changed["rpm"], changed["tpm"], changed["weight"], changed["models"]) == (None, 9000, 0, shown["models"])
    assert client.delete(f"{PATH}/openai").status_code == 204
    assert [row["name"] for row in client.get(PATH).json()["results"]] == ["openai-eu"]
    assert client.put(f"{PATH}/openai", {"enabled": False}).status_code == 404


def test_post__name_that_is_taken__409(project: Project) -> None:
    client = client_of(project)
    client.post(PATH, EU)
    taken = client.post(PATH, {**EU, "provider": "groq"})
    assert (taken.status_code, taken.json()["error"]["code"]) == (409, "integration_exists")


@tabled
def test_post__invalid__400_naming_the_field(project: Project, fields: dict[str, Any], place: str) -> None:
    response = client_of(project).post(PATH, {**EU, **fields})
    assert response.status_code == 400
    assert any(name.startswith(place) for name in response.json()["error"]["details"]), response.json()


@pytest.mark.parametrize("field", [{"name": "openai"}, {"provider": "groq"}])
def test_put__other_name_or_provider__400(project: Project, field: dict[str, str]) -> None:
    client = client_of(project)
    client.post(PATH, EU)
    response = client.put(f"{PATH}/openai-eu", field)
    assert response.status_code == 400
    assert list(response.json()["error"]["details"]) == list(field)


def test_deployments__one_of_two_switched_off__the_provider_is_not_disabled(project: Project) -> None:
    client = client_of(project)
    client.post(PATH, EU)
    client.post(PATH, {"provider": "openai", "api_key": KEY, "enabled": False})
    assert [one.name for one in read_deployments(project.pk)[0]] == ["openai-eu"]
    assert disabled_providers(project.pk) == frozenset()
    client.put(f"{PATH}/openai-eu", {"enabled": False})
    assert disabled_providers(project.pk) == {"openai"}


def test_deployments__one_of_two_unreadable__the_other_serves(project: Project) -> None:
    client = client_of(project)
    client.post(PATH, EU)
    client.post(PATH, {"provider": "openai", "api_key": KEY})
    ProviderIntegration.objects.for_project(project.pk).filter(name="openai").update(encrypted_secret="lost")
    found, unreadable = read_deployments(project.pk)
    assert ([one.name for one in found], unreadable) == (["openai-eu"], frozenset())


def test_row_of_the_previous_release__without_a_name__is_called_like_its_kind_and_unique(project: Project) -> None:
    client = client_of(project)
    client.post(PATH, {"provider": "openai", "api_key": KEY})
    client.post(PATH, {"provider": "groq", "api_key": KEY})
    with connection.cursor() as cursor:
        cursor.execute("UPDATE integrations_providerintegration SET name = ''")
    assert [row["name"] for row in client.get(PATH).json()["results"]] == ["groq", "openai"]
    assert client.post(PATH, {"provider": "openai", "api_key": KEY}).status_code == 409
    with pytest.raises(IntegrityError), transaction.atomic():
        ProviderIntegration.objects.create(project=project, provider="openai", name="openai")
    assert client.put(f"{PATH}/openai", {"enabled": False}).json()["enabled"] is False
    assert client.delete(f"{PATH}/groq").status_code == 204
