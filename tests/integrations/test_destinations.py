"""Tests that a stored credential goes only to the host that it was entered for, by every way of changing an
integration."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from core.models import Project
from integrations.models import ProviderIntegration
from tests.factories.core import make_key
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

KEY = "sk-secret-0123456789"
PATH = "/api/llm/integrations"
KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": KEY}
ACCOUNT = json.dumps(
    {
        "type": "service_account",
        "project_id": "my-project",
        "private_key": "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n",
        "client_email": "gateway@my-project.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
)
OPENAI: dict[str, Any] = {"provider": "openai", "api_key": KEY}
OWN: dict[str, Any] = {"provider": "openai", "api_key": KEY, "base_url": "https://1.1.1.1:8443/v1"}
AZURE: dict[str, Any] = {"provider": "azure_openai", "api_key": KEY, "base_url": "https://1.1.1.1", "deployment": "d"}
BEDROCK: dict[str, Any] = {"provider": "bedrock", "region": "eu-west-1", **KEYS}
BEARER: dict[str, Any] = {"provider": "bedrock", "region": "eu-west-1", "api_key": KEY}
VERTEX: dict[str, Any] = {"provider": "google_vertex", "location": "europe-west1", "api_key": ACCOUNT}


@pytest.fixture
def client(project: Project) -> APIClient:
    _, key = make_key(project)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}", HTTP_X_PROJECT_ID=str(project.pk))
    return client


def add(client: APIClient, row: dict[str, Any]) -> str:
    answer = client.post(PATH, row, format="json")
    assert answer.status_code == 201, answer.content
    return f"{PATH}/{row['provider']}"


def stored() -> dict[str, Any]:
    return dict(ProviderIntegration.objects.values().get())


@pytest.mark.parametrize(
    ("row", "change", "named"),
    [
        (OPENAI, {"base_url": "https://1.1.1.1/v1"}, ["base_url", "api_key"]),
        (OPENAI, {"base_url": "https://1.1.1.1/v1", "api_key": "****6789"}, ["base_url", "api_key"]),
        (OPENAI, {"base_url": "https://1.1.1.1/v1", "enabled": False}, ["base_url", "api_key"]),
        (OPENAI, {"base_url": "https://api.openai.com:444/v1"}, ["base_url", "api_key"]),
        (OPENAI, {"base_url": "https://api.openai.com.evil.test/v1"}, ["base_url", "api_key"]),
        (OWN, {"base_url": ""}, ["base_url", "api_key"]),
        (OWN, {"base_url": "https://1.1.1.2:8443/v1"}, ["base_url", "api_key"]),
        (OWN, {"base_url": "https://1.1.1.1/v1"}, ["base_url", "api_key"]),
        (AZURE, {"base_url": "https://1.1.1.2"}, ["base_url", "api_key"]),
        (BEDROCK, {"region": "us-east-1"}, ["region", "access_key_id", "secret_access_key"]),
        (BEDROCK, {"region": "us-east-1", "access_key_id": "AKNEW"}, ["region", "secret_access_key"]),
        (BEDROCK, {"base_url": "https://1.1.1.1"}, ["base_url", "access_key_id", "secret_access_key"]),
        # Secrets that are kept beside a new key would be used as soon as that key is cleared.
        (BEDROCK, {"base_url": "https://1.1.1.1", "api_key": "x"}, ["base_url", "access_key_id", "secret_access_key"]),
        (BEARER, {"region": "cn-north-1"}, ["region", "api_key"]),
        (VERTEX, {"location": "us-central1"}, ["location", "api_key"]),
        (VERTEX, {"base_url": "https://1.1.1.1/v1"}, ["base_url", "api_key"]),
    ],
)
def test_put__another_host_with_the_stored_credential__refused_by_field_and_nothing_changed(
    client: APIClient, row: dict[str, Any], change: dict[str, Any], named: list[str]
) -> None:
    path, before = add(client, row), stored()

    answer = client.put(path, change, format="json")

    assert answer.status_code == 400, answer.content
    error = answer.json()["error"]
    assert list(error["details"]) == named
    assert KEY not in answer.content.decode()
    assert stored() == before


@tabled
def test_put__same_host_or_credential_given_again__saved(
    client: APIClient, row: dict[str, Any], change: dict[str, Any]
) -> None:
    answer = client.put(add(client, row), change, format="json")

    assert answer.status_code == 200, answer.content


def test_put__another_host_without_any_credential__saved(client: APIClient) -> None:
    path = add(client, {"provider": "vllm", "base_url": "https://1.1.1.1/v1"})

    assert client.put(path, {"base_url": "https://1.1.1.2/v1"}, format="json").status_code == 200


def test_test_call__another_region_with_the_stored_keys__refused(client: APIClient) -> None:
    path = add(client, BEDROCK)

    answer = client.post(f"{path}/test", {"region": "us-east-1"}, format="json")

    assert answer.status_code == 400
    assert "region" in answer.json()["error"]["details"]
