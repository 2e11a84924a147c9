from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from analytics.models import TraceDestination
from core.encryption import fernet as crypto
from core.encryption import rotation
from core.encryption.rotation import models_with_secrets, rotate_all
from core.models import EncryptionCanary, Project, SecondFactor
from gateway.alerts.secrets import ensure_secret, secret_of
from gateway.tables.alert import AlertSecret
from gateway.tables.figure_alert import AlertChannel
from integrations.models import ProviderIntegration
from integrations.selectors import enabled_credentials
from integrations.services import IntegrationChange, add_integration, update_integration
from tests.factories.core import make_project

OLD, NEW, LOST = (Fernet.generate_key().decode() for _ in range(3))
EXTRA = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "wJalrXUtnFEMI"}


@pytest.fixture
def project(db: None, settings: Settings) -> Project:
    settings.ENCRYPTION_KEYS = [OLD]
    made = make_project()
    add_integration(project_id=made.pk, provider="openai", change=IntegrationChange(secret="sk-under-the-old-key"))
    options = {"region": "eu-west-1"}
    add_integration(
        project_id=made.pk, provider="bedrock", change=IntegrationChange(secret_extra=EXTRA, options=options)
    )
    ensure_secret(made.pk)
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    return made


def tokens() -> list[str]:
    found = [
        token for row in ProviderIntegration.objects.values_list("encrypted_secret", "encrypted_extra") for token in row
    ]
    return [token for token in [*found, *AlertSecret.objects.values_list("token", flat=True)] if token]


def run(**options: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("rotate_encryption_keys", stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_models__with_secrets__are_found() -> None:
    secrets = {ProviderIntegration, AlertChannel, AlertSecret, EncryptionCanary, SecondFactor, TraceDestination}
    assert set(models_with_secrets()) == secrets


def test_command__then_the_old_key_removed__every_secret_readable(project: Project, settings: Settings) -> None:
    webhook = secret_of(project.pk)
    changed = list(ProviderIntegration.objects.values_list("updated_at", flat=True))
    output, problems = run()
    assert "ProviderIntegration: 2 rotated, 0 under the newest key already, 0 unreadable" in output
    assert "AlertSecret: 1 rotated" in output
    assert (problems, all(map(crypto.is_current, tokens()))) == ("", True)
    settings.ENCRYPTION_KEYS = [NEW]
    bedrock, openai = enabled_credentials(project.pk)
    assert (openai.secret, {**bedrock.extra}) == ("sk-under-the-old-key", {**EXTRA, "region": "eu-west-1"})
    assert secret_of(project.pk) == webhook
    # The gateway reads the same values as before.
    assert list(ProviderIntegration.objects.values_list("updated_at", flat=True)) == changed


def test_command__again__writes_nothing(project: Project) -> None:
    run()
    before = tokens()
    output, _ = run()
    assert "ProviderIntegration: 0 rotated, 2 under the newest key already" in output
    assert tokens() == before


def test_command__dry_run__counts_and_writes_nothing(project: Project) -> None:
    before = tokens()
    output, _ = run(dry_run=True)
    assert "ProviderIntegration: 2 to rotate" in output
    assert tokens() == before


def test_command__broken_off__goes_on_where_it_was(project: Project) -> None:
    done: list[str] = []

    def rotate_one_then_die(token: str) -> str:
        if done:
            raise KeyboardInterrupt
        done.append(token)
        return crypto.rotate(token)

    with patch.object(rotation, "rotate", rotate_one_then_die), pytest.raises(KeyboardInterrupt):
        run()
    assert sum(map(crypto.is_current, tokens())) == 1
    run()
    assert all(map(crypto.is_current, tokens()))


def test_command__row_under_a_lost_key__listed_by_id_and_unchanged(project: Project, settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [LOST]
    other = make_project()
    lost = add_integration(project_id=other.pk, provider="groq", change=IntegrationChange(secret="gsk_lost_for_good"))
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    output, problems = run()
    assert "ProviderIntegration: 2 rotated, 0 under the newest key already, 1 unreadable" in output
    assert f"ProviderIntegration {lost.pk} was encrypted with a key that is not configured" in problems
    stored = lost.encrypted_secret
    lost.refresh_from_db()
    assert lost.encrypted_secret == stored
    settings.ENCRYPTION_KEYS = [NEW, LOST]
    assert enabled_credentials(other.pk)[0].secret == "gsk_lost_for_good"


def test_rotation__secret_changed_at_that_moment__the_change_stays(project: Project) -> None:
    def changed_meanwhile(token: str) -> str:
        change = IntegrationChange(secret="sk-entered-meanwhile")
        with patch.object(rotation, "rotate", crypto.rotate):
            update_integration(project_id=project.pk, name="openai", change=change)
        return crypto.rotate(token)

    with patch.object(rotation, "rotate", changed_meanwhile):
        rotate_all()
    _, openai = enabled_credentials(project.pk)
    assert openai.secret == "sk-entered-meanwhile"
    rotate_all()
    assert all(map(crypto.is_current, tokens()))


def test_command__worker_that_keeps_writing_under_the_old_key__refuses_to_say_done(project: Project) -> None:
    def still_old(token: str) -> str:
        return token

    with patch.object(rotation, "rotate", still_old), pytest.raises(CommandError, match="old keys"):
        run()


@pytest.mark.django_db(transaction=True)
def test_rotation__two_at_once__each_secret_once_and_readable(project: Project, settings: Settings) -> None:
    for _ in range(20):
        settings.ENCRYPTION_KEYS = [OLD]
        add_integration(
            project_id=make_project().pk, provider="openai", change=IntegrationChange(secret="sk-one-of-many")
        )
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    def rotate_in_thread(_: int) -> int:
        try:
            return sum(found.rotated for found in rotate_all())
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(rotate_in_thread, range(2))) == 23
    settings.ENCRYPTION_KEYS = [NEW]
    assert all(crypto.decrypt(token) for token in tokens())
