from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings

from core.encryption.canary import WrongKeysError, check_canary, ensure_canary, wrong_keys
from core.encryption.fernet import decrypt
from core.models import EncryptionCanary
from gateway.worker.lifespan import lifespan
from integrations.services import IntegrationChange, add_integration
from tests.factories.core import make_project
from tests.services import START_SECONDS

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))

pytestmark = pytest.mark.django_db


def test_canary__same_keys__says_nothing() -> None:
    ensure_canary()
    ensure_canary()

    check_canary()
    assert wrong_keys() is None


def test_canary__other_keys__are_refused_by_name(settings: Settings) -> None:
    ensure_canary()
    settings.ENCRYPTION_KEYS = [NEW]

    with pytest.raises(WrongKeysError, match="ENCRYPTION_KEYS"):
        check_canary()
    with pytest.raises(WrongKeysError):
        ensure_canary()
    assert NEW not in (wrong_keys() or "")


def test_canary__installation_older_than_canaries__checks_the_stored_credentials(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [OLD]
    add_integration(project_id=make_project().pk, provider="openai", change=IntegrationChange(secret="sk-of-before"))
    settings.ENCRYPTION_KEYS = [NEW]

    with pytest.raises(WrongKeysError):
        ensure_canary()
    assert not EncryptionCanary.objects.exists()

    settings.ENCRYPTION_KEYS = [OLD]
    ensure_canary()
    check_canary()


def test_canary__keys_rotated__old_key_is_needed_no_more_and_wrong_from_then_on(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [OLD]
    ensure_canary()
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    check_canary()

    call_command("rotate_encryption_keys")

    settings.ENCRYPTION_KEYS = [NEW]
    check_canary()
    settings.ENCRYPTION_KEYS = [OLD]
    with pytest.raises(WrongKeysError):
        check_canary()


def test_canary__former_keys_lost_for_good__can_be_replaced(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [OLD]
    ensure_canary()
    settings.ENCRYPTION_KEYS = [NEW]

    call_command("rotate_encryption_keys", accept_loss=True)

    check_canary()
    assert decrypt(EncryptionCanary.objects.get().token)


@pytest.mark.django_db(transaction=True)
def test_web_worker__other_keys__does_not_start(settings: Settings) -> None:
    ensure_canary()
    settings.ENCRYPTION_KEYS = [NEW]
    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    async def send(message: object) -> None:
        sent.append(message)

    asyncio.run(lifespan({"type": "lifespan"}, receive, send))

    [message] = sent
    assert message["type"] == "lifespan.startup.failed"
    assert "ENCRYPTION_KEYS" in message["message"]


@pytest.mark.django_db(transaction=True)
def test_celery__other_keys__does_not_start() -> None:
    ensure_canary()
    there = connection.settings_dict
    address = f"postgresql://postgres@/{there['NAME']}?host={there['HOST']}"

    ran = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "config", "worker", "--pool", "threads"],
        env={**os.environ, "DATABASE_URL": address, "ENCRYPTION_KEYS": NEW},
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )

    assert ran.returncode == 1
    assert "ENCRYPTION_KEYS has none of the keys" in ran.stderr
