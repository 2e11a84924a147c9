"""Tests POST /integrations/{provider}/test and the outcome in the list afterwards."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from core.models import Project
from integrations import viewsets
from integrations.connection_tests import services
from integrations.connectivity.outcomes import ConnectionOutcome, Reason
from integrations.connectivity.trial import try_credentials
from integrations.models import ProviderIntegration
from integrations.selectors import enabled_credentials
from integrations.services import IntegrationChange
from tests.factories.core import client_of, make_project
from tests.fakes.cheap_calls import cheap_call
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer
from tests.integrations.saved import save_integration

pytestmark = pytest.mark.django_db

PATH = "/api/llm/integrations"
GOOD = FAKES["openai"].credentials("").secret
BAD = "sk-canary-that-nobody-knows-91ac"


@pytest.fixture(scope="module")
def upstream() -> Iterator[DialectServer]:
    with DialectServer() as running:
        yield running


@pytest.fixture
def base_url(upstream: DialectServer) -> str:
    upstream.play("openai", cheap_call("openai"))
    return FAKES["openai"].credentials(upstream.base_url("openai")).base_url


@pytest.fixture
def project(base_url: str) -> Project:
    created = make_project()
    save_integration(
        project_id=created.pk,
        provider="openai",
        change=IntegrationChange(secret=GOOD, base_url=base_url),
        trusted=True,
    )
    return created


def stored(project: Project) -> ProviderIntegration:
    return ProviderIntegration.objects.for_project(project.pk).get()


def last_test(project: Project) -> Any:
    return client_of(project).get(PATH).json()["results"][0]["last_test"]


def test_saved__works__ok_and_remembered(project: Project) -> None:
    assert last_test(project) is None
    before = stored(project).updated_at
    answer = client_of(project).post(f"{PATH}/openai/test")
    assert answer.status_code == 200
    body = answer.json()
    assert body == {
        "ok": True,
        "status": 200,
        "latency_ms": body["latency_ms"],
        "reason": "ok",
        "detail": "The provider let the credential list the models.",
    }
    remembered = last_test(project)
    assert (remembered["ok"], remembered["reason"]) == (True, "ok")
    # The gateway's workers need not load the integration again.
    assert stored(project).updated_at == before


def test_temporary_key__refused__reported_without_it_and_nothing_stored(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(project)
    client.post(f"{PATH}/openai/test")
    with caplog.at_level(logging.DEBUG):
        answer = client.post(f"{PATH}/openai/test", {"api_key": BAD, "enabled": False})
    assert (answer.status_code, answer.json()["reason"]) == (200, "invalid_credential")
    assert "Incorrect API key provided" in answer.json()["detail"]
    assert BAD not in answer.content.decode() + caplog.text
    assert "integration.tested" in caplog.text
    row = stored(project)
    assert (row.enabled, row.last_test_ok) == (True, True)
    assert enabled_credentials(project.pk)[0].secret == GOOD


def test_temporary_key__before_anything_is_stored__tried_and_not_stored(base_url: str) -> None:
    other = make_project()
    answer = client_of(other).post(f"{PATH}/openai/test", {"api_key": GOOD, "base_url": base_url})
    assert answer.json()["ok"] is True
    assert not ProviderIntegration.objects.for_project(other.pk).exists()


def test_masked_key__written_back__tests_what_is_stored(project: Project) -> None:
    client = client_of(project)
    shown = client.get(PATH).json()["results"][0]["api_key"]
    assert client.post(f"{PATH}/openai/test", {"api_key": shown}).json()["ok"] is True
    assert last_test(project)["ok"] is True


def test_other_address__with_the_stored_key__refused_and_nothing_sent(
    project: Project, upstream: DialectServer
) -> None:
    thief = upstream.play("thief", cheap_call("openai"))
    client, body = client_of(project), {"base_url": upstream.base_url("thief")}
    for more in ({}, {"api_key": "****"}, {"api_key": ""}):
        answer = client.post(f"{PATH}/openai/test", {**body, **more})
        assert answer.status_code == 400
        assert "api_key" in answer.json()["error"]["details"]
    assert not thief.received
    assert client.post(f"{PATH}/openai/test", {**body, "api_key": "sk-of-the-tester"}).status_code == 200
    assert len(thief.received) == 1


def test_changed_key_or_address__last_test_forgotten(project: Project, base_url: str) -> None:
    client = client_of(project)
    for change in ({"api_key": "sk-another-key-1234"}, {"api_key": GOOD}, {"base_url": f"{base_url}/"}):
        client.post(f"{PATH}/openai/test")
        assert last_test(project) is not None
        assert client.put(f"{PATH}/openai", change).status_code == 200
    # The slash at the end is not a part of the address.
    assert last_test(project) is not None
    client.put(f"{PATH}/openai", {"enabled": False, "api_key": "****41d8"})
    assert last_test(project) is not None
    client.put(f"{PATH}/openai", {"base_url": "http://127.0.0.1:9/v1", "api_key": GOOD})
    assert last_test(project) is None


def test_rotation_by_put__new_key_is_the_one_that_is_used(project: Project) -> None:
    client = client_of(project)
    assert client.put(f"{PATH}/openai", {"api_key": BAD}).json()["api_key"] == "****91ac"
    assert client.post(f"{PATH}/openai/test").json()["reason"] == "invalid_credential"
    assert last_test(project) == {"tested_at": last_test(project)["tested_at"], "ok": False,
                                  "reason": "invalid_credential"}  # fmt: skip
    client.put(f"{PATH}/openai", {"api_key": GOOD})
    assert client.post(f"{PATH}/openai/test").json()["ok"] is True


def test_result__of_a_key_that_was_replaced_meanwhile__not_remembered(project: Project) -> None:
    def replaced_meanwhile(*args: Any) -> Any:
        client_of(project).put(f"{PATH}/openai", {"api_key": BAD})
        return try_credentials(*args)

    with patch.object(services, "try_credentials", replaced_meanwhile):
        assert client_of(project).post(f"{PATH}/openai/test").json()["ok"] is True
    assert last_test(project) is None


def test_lost_encryption_key__flagged_reported_and_curable(project: Project, settings: Settings) -> None:
    client = client_of(project)
    assert client.get(PATH).json()["results"][0]["usable"] is True
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    (row,) = client.get(PATH).json()["results"]
    assert (row["usable"], row["api_key"][:4]) == (False, "****")
    answer = client.post(f"{PATH}/openai/test").json()
    assert (answer["ok"], answer["reason"], answer["status"]) == (False, "unreadable_secret", None)
    assert last_test(project)["reason"] == "unreadable_secret"
    assert client.post(f"{PATH}/openai/test", {"api_key": GOOD}).json()["ok"] is True
    assert client.put(f"{PATH}/openai", {"api_key": GOOD}).json()["usable"] is True


def test_nothing_to_test__404_for_everyone(project: Project) -> None:
    client = client_of(project)
    for provider in ("groq", "nobody", "a" * 300, "%00", "sandbox"):
        answer = client.post(f"{PATH}/{provider}/test")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "integration_not_found"), provider
    assert client_of(make_project()).post(f"{PATH}/openai/test").status_code == 404
    assert client.get(f"{PATH}/openai/test").status_code == 405


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"api_key": "with blanks in it"}, "api_key"),
        ({"api_key": "x" * 50_000}, "api_key"),
        ({"api_key": 7.5}, ""),
        ({"api_key": "sk-new", "base_url": "http://169.254.169.254/v1"}, "base_url"),
        ({"api_key": "sk-new", "base_url": "https://[::1"}, "base_url"),
        ({"api_key": "sk-new", "base_url": "https://user:pass@x.example/"}, "base_url"),
        ({"api_key": "\ud800"}, ""),
        ({"region": "a.evil.test/"}, "region"),
    ],
)
def test_body__invalid__400_and_nothing_sent(
    project: Project, upstream: DialectServer, settings: Settings, body: Any, field: str
) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    with patch.object(services, "try_credentials", return_value=ConnectionOutcome(False, Reason.REJECTED, "")) as sent:
        answer = client_of(project).post(f"{PATH}/openai/test", json.dumps(body), content_type="application/json")
    assert answer.status_code in ({400} if field else {200, 400}), answer.content
    if field:
        assert field in answer.json()["error"]["details"]
        sent.assert_not_called()


def test_tests__too_many__429_with_a_time_to_wait(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewsets.TestThrottle, "timer", lambda _: 1_700_000_000.0)
    outcome = ConnectionOutcome(True, Reason.OK, "")
    with patch.object(services, "try_credentials", return_value=outcome):
        answers = [client_of(project).post(f"{PATH}/openai/test") for _ in range(61)]
    assert [answer.status_code for answer in answers] == [200] * 60 + [429]
    assert int(answers[-1]["Retry-After"]) > 0
    assert client_of(make_project()).post(f"{PATH}/openai/test").status_code == 404
