"""The role of the machine in place of stored keys, against a server that plays those of three clouds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from google.auth.compute_engine import _metadata
from pytest_django import Settings

from core.errors import ValidationError
from core.models import Project
from integrations.providers.base import ChatRequest, Credentials
from integrations.providers.errors import ProviderError
from integrations.registry import adapter_for
from integrations.services import IntegrationChange, add_integration, update_integration
from integrations.transport.ambient import Roles
from tests.fakes.upstream import Connection, Received, UpstreamServer

OPTIONS = {
    "bedrock": {"region": "eu-west-1"},
    "google_vertex": {"project": "p", "location": "global"},
    "azure_openai": {},
}
ADDRESSES = {"bedrock": "", "google_vertex": "", "azure_openai": "https://mine.openai.azure.com"}
CLOUDS = pytest.mark.parametrize("provider", OPTIONS)


@dataclass
class Metadata:
    """Gives the key `key` for `seconds`, or refuses, which no library repeats."""

    key: str = "first"
    seconds: int = 120
    fails: bool = False
    received: list[Received] = field(default_factory=list)

    async def __call__(self, request: Received, connection: Connection) -> None:
        self.received.append(request)
        status = 403 if self.fails else 200
        headers = {"content-type": "application/json", "metadata-flavor": "Google"}
        await connection.send_whole(status, json.dumps(self._answer(request.path)).encode(), headers)

    def _answer(self, target: str) -> dict[str, Any]:
        if target == "/aws":
            expires = datetime.now(UTC) + timedelta(seconds=self.seconds)
            keys = {"AccessKeyId": "AK", "SecretAccessKey": "SK", "Token": self.key}
            return {**keys, "Expiration": f"{expires:%Y-%m-%dT%H:%M:%SZ}"}
        if "recursive=true" in target:
            return {"email": "role@p.iam.gserviceaccount.com", "scopes": []}
        return {"access_token": self.key, "expires_in": self.seconds, "token_type": "Bearer"}


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Settings) -> Iterator[Metadata]:
    settings.AMBIENT_CREDENTIALS = True
    answers = Metadata()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    token = tmp_path / "federated"
    token.write_text("of-the-cluster\n")
    with UpstreamServer(answers) as running:
        environment = {
            "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
            "AWS_CONFIG_FILE": str(tmp_path / "none"),
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{running.url}/aws",
            "CLOUDSDK_CONFIG": str(tmp_path),
            "GCE_METADATA_IP": f"127.0.0.1:{running.port}",
            "AZURE_AUTHORITY_HOST": running.url,
            "AZURE_TENANT_ID": "tenant",
            "AZURE_CLIENT_ID": "client",
            "AZURE_FEDERATED_TOKEN_FILE": str(token),
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        # google-auth reads the variable when it is imported.
        monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", f"127.0.0.1:{running.port}")
        yield answers


def credentials(provider: str) -> Credentials:
    extra = {**OPTIONS[provider], "credentials": "ambient"}
    return Credentials(1, provider, ADDRESSES[provider], "", extra)


def authorization(found: Credentials) -> str:
    """What a request carries: the key, and AWS's session."""
    body = b'{"messages": [{"role": "user", "content": "Hi"}]}'
    model = {"bedrock": "amazon.nova-lite-v1:0", "google_vertex": "gemini-3-flash", "azure_openai": "gpt-4o"}
    request = ChatRequest(model[found.provider], stream=False, body=body, fields=json.loads(body))
    headers = adapter_for(found.provider).build_request(request, found).headers
    assert "api-key" not in headers
    return headers.get("x-amz-security-token") or headers["authorization"].removeprefix("Bearer ")


@CLOUDS
def test_resolved__role_of_each_cloud__renewed_before_it_expires_and_kept_while_its_server_fails(
    metadata: Metadata, provider: str
) -> None:
    roles, stored = Roles(rest_seconds=0), credentials(provider)
    first = roles.resolved(stored)
    metadata.key, metadata.seconds = "second", 3600
    second = roles.resolved(first)
    asked = len(metadata.received)

    assert (authorization(first), authorization(second)) == ("first", "second")
    assert roles.resolved(second) is second
    assert len(metadata.received) == asked
    metadata.fails = True
    assert authorization(roles.resolved(stored)) == "second"


# botocore, which keeps keys itself, asks three times with pauses.
@pytest.mark.parametrize("provider", ["google_vertex", "azure_openai"])
def test_resolved__server_fails_as_the_key_expires__last_key_stays_and_failure_is_said_once(
    metadata: Metadata, provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    roles, stored = Roles(rest_seconds=0), credentials(provider)
    with pytest.raises(ProviderError, match="role of the gateway's machine gives no key"):
        metadata.fails = True
        authorization(roles.resolved(stored))
    metadata.fails = False
    roles.resolved(stored)
    metadata.fails = True

    assert authorization(roles.resolved(stored)) == "first"
    assert authorization(roles.resolved(stored)) == "first"
    said = [record.getMessage() for record in caplog.records if "ambient.refused" in record.getMessage()]
    assert len(said) == 2


def test_resolved__azure__asks_with_the_clusters_token_for_its_cognitive_services(metadata: Metadata) -> None:
    Roles().resolved(credentials("azure_openai"))

    (request,) = metadata.received
    form = parse_qs(request.body.decode())
    assert request.path == "/tenant/oauth2/v2.0/token"
    assert (form["client_assertion"], form["client_id"]) == (["of-the-cluster"], ["client"])
    assert form["scope"] == ["https://cognitiveservices.azure.com/.default"]


def test_resolved__operator_takes_it_back__no_key(metadata: Metadata, settings: Settings) -> None:
    roles = Roles()
    held = roles.resolved(credentials("google_vertex"))
    settings.AMBIENT_CREDENTIALS = False

    assert roles.resolved(held).secret == ""
    assert roles.resolved(credentials("bedrock")).extra == credentials("bedrock").extra


@pytest.mark.django_db
@CLOUDS
def test_integration__ambient__only_where_the_operator_allows_it_and_at_the_hosts_of_its_cloud(
    project: Project, settings: Settings, provider: str
) -> None:
    def add(**given: Any) -> None:
        options = {**OPTIONS[provider], "credentials": "ambient"}
        change = IntegrationChange(**{"options": options, "base_url": ADDRESSES[provider], **given})
        add_integration(project_id=project.pk, provider=provider, change=change)

    settings.ALLOW_PRIVATE_UPSTREAMS = False
    with pytest.raises(ValidationError, match="AMBIENT_CREDENTIALS=1"):
        add()
    settings.AMBIENT_CREDENTIALS = True
    with pytest.raises(ValidationError, match="clear the stored key"):
        add(secret="a-key-of-its-own")
    with pytest.raises(ValidationError, match="base_url: must be a host of"):
        add(base_url="https://example.com/v1")
    add()
    with pytest.raises(ValidationError, match="base_url: must be a host of"):
        change = IntegrationChange(base_url="https://amazonaws.com.example.com")
        update_integration(project_id=project.pk, name=provider, change=change)
