from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from core.models import Project
from integrations.models import ProviderIntegration
from integrations.selectors import enabled_credentials
from tests.factories.core import client_of, make_project
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

KEY = "sk-secret-0123456789"
PATH = "/api/llm/integrations"


def test_post__new__201_and_the_key_only_masked(project: Project) -> None:
    response = client_of(project).post(PATH, {"provider": "openai", "api_key": KEY, "enabled": True})
    assert response.status_code == 201
    body = response.json()
    assert (body["provider"], body["enabled"], body["api_key"]) == ("openai", True, "****6789")
    assert KEY not in response.content.decode()
    assert enabled_credentials(project.pk)[0].secret == KEY


def test_post__exists__409(project: Project) -> None:
    client = client_of(project)
    client.post(PATH, {"provider": "openai", "api_key": KEY})
    response = client.post(PATH, {"provider": "openai", "api_key": KEY})
    assert response.status_code == 409
    assert response.json()["error"]["code"] == "integration_exists"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"provider": "nobody", "api_key": KEY}, "provider"),
        ({"provider": "openai"}, "api_key"),
        ({"provider": "openai", "api_key": KEY, "base_url": "http://169.254.169.254/v1"}, "base_url"),
        ({"provider": "openai", "api_key": "x" * 5000}, "api_key"),
        ({"provider": "bedrock", "access_key_id": "AK", "secret_access_key": KEY}, "region"),
        ({"provider": "bedrock", "access_key_id": "AK", "region": "eu-west-1"}, "secret_access_key"),
        ({"provider": "bedrock", "api_key": KEY, "region": "a.evil.test/"}, "region"),
        ({"provider": "google_vertex", "api_key": '{"type": "service_account"}'}, "api_key"),
    ],
)
def test_post__invalid__400_naming_the_field(
    project: Project, settings: Settings, body: dict[str, Any], field: str
) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    response = client_of(project).post(PATH, body)
    assert response.status_code == 400
    assert field in response.json()["error"]["details"]
    assert KEY not in response.content.decode()


def test_get__list__own_project_only_and_masked(project: Project) -> None:
    client, other = client_of(project), client_of(make_project())
    client.post(PATH, {"provider": "openai", "api_key": KEY})
    client.post(PATH, {"provider": "groq", "api_key": "gsk_short"})
    response = client.get(PATH)
    assert response.status_code == 200
    body = response.json()
    assert body["count"] == 2
    assert [(row["provider"], row["api_key"]) for row in body["results"]] == [("groq", "****"), ("openai", "****6789")]
    assert other.get(PATH).json()["count"] == 0
    assert client.get(f"{PATH}?limit=1").json()["next"]


def test_put__masked_key_and_toggle__key_kept(project: Project) -> None:
    client = client_of(project)
    client.post(PATH, {"provider": "openai", "api_key": KEY})
    response = client.put(f"{PATH}/openai", {"api_key": "****6789", "enabled": False})
    assert (response.status_code, response.json()["enabled"]) == (200, False)
    client.put(f"{PATH}/openai", {"enabled": True})
    assert enabled_credentials(project.pk)[0].secret == KEY
    client.put(f"{PATH}/openai", {"api_key": "sk-new-9876543210"})
    assert enabled_credentials(project.pk)[0].secret == "sk-new-9876543210"


def test_bedrock__keys_and_region__never_shown_and_kept_when_written_back(project: Project) -> None:
    client = client_of(project)
    keys = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": KEY, "session_token": "token/=="}
    created = client.post(PATH, {"provider": "bedrock", "region": "eu-west-1", **keys})
    assert created.status_code == 201, created.content
    (shown,) = client.get(PATH).json()["results"]
    assert shown["region"] == "eu-west-1"
    assert {name: shown[name] for name in keys} == dict.fromkeys(keys, "****")
    for answer in (created, client.get(PATH)):
        assert not any(secret in answer.content.decode() for secret in keys.values())
    answer = client.put(f"{PATH}/bedrock", {**shown, "enabled": False})
    assert answer.status_code == 200, answer.content
    client.put(f"{PATH}/bedrock", {"enabled": True})
    assert enabled_credentials(project.pk)[0].extra == {**keys, "region": "eu-west-1"}
    cleared = client.put(f"{PATH}/bedrock", {"session_token": ""})
    assert "session_token" not in cleared.json()


def test_vertex__service_account_of_many_lines__stored_and_masked_without_a_tail(project: Project) -> None:
    account = {
        "type": "service_account",
        "project_id": "my-project",
        "private_key": "-----BEGIN PRIVATE KEY-----\n" + "MIIE" * 500 + "\n-----END PRIVATE KEY-----\n",
        "client_email": "gateway@my-project.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
        "padding": "x" * 4096,
    }
    client = client_of(project)
    body = {"provider": "google_vertex", "api_key": json.dumps(account, indent=2), "location": "europe-west4"}
    created = client.post(PATH, body)
    assert created.status_code == 201, created.content
    assert created.json()["api_key"] == "****"
    assert (created.json()["location"], "MIIE" in created.content.decode()) == ("europe-west4", False)
    assert json.loads(enabled_credentials(project.pk)[0].secret) == account


def test_delete__row__204_then_404(project: Project) -> None:
    client = client_of(project)
    client.post(PATH, {"provider": "openai", "api_key": KEY})
    assert client.delete(f"{PATH}/openai").status_code == 204
    assert not ProviderIntegration.objects.exists()
    for response in (client.delete(f"{PATH}/openai"), client.put(f"{PATH}/openai", {"enabled": True})):
        assert (response.status_code, response.json()["error"]["code"]) == (404, "integration_not_found")


def test_another_project__its_integration__404(project: Project) -> None:
    client_of(project).post(PATH, {"provider": "openai", "api_key": KEY})
    intruder = client_of(make_project())
    assert intruder.put(f"{PATH}/openai", {"enabled": False}).status_code == 404
    assert intruder.delete(f"{PATH}/openai").status_code == 404
    assert enabled_credentials(project.pk)


def test_no_key__401(project: Project) -> None:
    client = APIClient()
    client.credentials(HTTP_X_PROJECT_ID=str(project.pk))
    assert client.get(PATH).status_code == 401


@tabled
def test_post__field_of_another_provider__refused_by_name(
    project: Project, body: dict[str, Any], foreign: list[str]
) -> None:
    response = client_of(project).post(PATH, body)

    assert response.status_code == 400
    assert sorted(response.json()["error"]["details"]) == sorted(foreign)
    assert not ProviderIntegration.objects.exists()


def test_put__field_of_another_provider__refused_but_for_what_was_stored_before(project: Project) -> None:
    client = client_of(project)
    client.post(PATH, {"provider": "openai", "api_key": KEY})
    ProviderIntegration.objects.update(options={"region": "eu"})

    assert client.put(f"{PATH}/openai", {"project": "mine"}).status_code == 400
    assert client.put(f"{PATH}/openai", {"region": "us"}).status_code == 400
    assert client.put(f"{PATH}/openai", {"region": "eu", "project": ""}).status_code == 200
    shown = client.get(PATH).json()["results"][0]
    assert client.put(f"{PATH}/openai", shown).status_code == 200
