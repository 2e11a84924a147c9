"""Integrations whose stored credential no encryption key reads: their own error, and other providers take over."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from cryptography.fernet import Fernet

from tests.fakes import scripted as play
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway
from tests.gateway.wire import assert_error, body


def _lose_key_of(gateway: Gateway, provider: str) -> None:
    """Replaces the credential by one that a host with other keys stored; the workers learn of it as of any change."""
    foreign = Fernet(Fernet.generate_key()).encrypt(b"sk-of-another-host").decode()
    with closing(sqlite3.connect(gateway.service.database, timeout=20)) as connection, connection:
        connection.execute(
            "UPDATE integrations_providerintegration SET encrypted_secret = ?"
            " WHERE provider = ? AND project_id = replace(?, '-', '')",
            (foreign, provider, gateway.project_id),
        )
    gateway.service.set_routing(gateway.project_id, retry_max_attempts=2)


def _until_error(gateway: Gateway, code: str, **fields: object) -> None:
    gateway.service.until(
        lambda: gateway.post(body(**fields)).json(), lambda answer: answer.get("error", {}).get("code") == code
    )


def test_unreadable__only_provider_of_the_model__is_500_of_its_own(routed: Routed) -> None:
    gateway, scripts = routed(openai=[play.answer()])
    _lose_key_of(gateway, "openai")
    _until_error(gateway, "credential_unreadable")
    received = len(scripts["openai"].received)

    response = gateway.post(body())

    assert_error(response, 500, "credential_unreadable", naming="openai")
    assert response.json()["error"]["type"] == "api_error"
    assert len(scripts["openai"].received) == received
    record = gateway.record(response)
    assert (record.status_code, record.error_code) == (500, "credential_unreadable")
    assert [(attempt.provider, attempt.error) for attempt in record.attempts] == [("openai", "credential_unreadable")]
    [listed] = gateway.manage("GET", "integrations").json()["results"]
    assert listed["usable"] is False
    assert "sk-of" not in response.text


def test_unreadable__another_provider_of_the_model__takes_over_and_says_so(routed: Routed) -> None:
    gateway, _ = routed(openai=[play.answer("lost")], azure_openai=[play.answer("saved")])
    _lose_key_of(gateway, "openai")
    _until_error(gateway, "credential_unreadable", model="gpt-4o", provider={"allow_fallbacks": False})

    response = gateway.post(body(model="gpt-4o"))

    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] == "saved"
    assert response.headers["x-svc-fallback-used"] == "true"
    record = gateway.record(response)
    assert record.attempts[0].error == "credential_unreadable"
    assert record.provider == "azure_openai"


def test_unreadable__fallback_provider_with_another_model__takes_over(routed: Routed) -> None:
    gateway, _ = routed({"fallback_order": ["groq"]}, openai=[play.answer("lost")], groq=[play.answer("saved")])
    _lose_key_of(gateway, "openai")
    _until_error(gateway, "credential_unreadable", provider={"allow_fallbacks": False})

    response = gateway.post(body())

    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] == "saved"
    assert response.headers["x-svc-original-model"] == "openai/gpt-4o"


def test_unreadable__credential_entered_again__serves_at_once(routed: Routed) -> None:
    gateway, _ = routed(openai=[play.answer("back")])
    _lose_key_of(gateway, "openai")
    _until_error(gateway, "credential_unreadable")

    changed = gateway.manage("PUT", "integrations/openai", {"api_key": "sk-entered-again-0123"})

    assert changed.status_code == 200
    gateway.service.until(lambda: gateway.post(body()), lambda answer: answer.status_code == 200)


def test_unreadable__model_of_nobody__is_404_still(routed: Routed) -> None:
    gateway, _ = routed(openai=[play.answer()])
    _lose_key_of(gateway, "openai")
    _until_error(gateway, "credential_unreadable")

    assert_error(gateway.post(body(model="claude-sonnet-4-5")), 404, "model_not_found")
