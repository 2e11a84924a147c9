from __future__ import annotations

from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from pytest_django import Settings

from core.management.commands import rotate_encryption_keys
from core.models import AuditEntry, Project
from integrations.pricing.models import ModelPrice
from integrations.services import IntegrationChange, add_integration
from tests.factories.core import make_project

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))
SECRET = "sk-under-the-old-key"


@pytest.fixture
def project(db: None, settings: Settings) -> Project:
    settings.ENCRYPTION_KEYS = [OLD]
    made = make_project()
    for provider in ("openai", "groq"):
        add_integration(project_id=made.pk, provider=provider, change=IntegrationChange(secret=SECRET))
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    return made


def _entries(name: str) -> list[AuditEntry]:
    found = list(AuditEntry.objects.filter(operation=name).order_by("pk"))
    assert {(entry.actor_kind, entry.actor_name, entry.via) for entry in found} <= {("command", name, "command")}
    return found


def _changes(name: str) -> list[tuple[Any, str, dict[str, Any]]]:
    return [(entry.project_id, entry.object_kind, entry.changes) for entry in _entries(name)]


def test_rotation__of_a_projects_secrets__is_an_entry_of_the_project_without_them(project: Project) -> None:
    call_command("rotate_encryption_keys")

    assert _changes("rotate_encryption_keys") == [(project.pk, "encryption", {"rotated_secrets": [None, 2]})]
    [entry] = _entries("rotate_encryption_keys")
    assert SECRET not in str(entry.changes) and "gAAAA" not in str(entry.changes)


def test_rotation__that_changes_nothing__makes_no_entry(project: Project) -> None:
    call_command("rotate_encryption_keys", dry_run=True)
    assert _changes("rotate_encryption_keys") == []
    call_command("rotate_encryption_keys")
    call_command("rotate_encryption_keys")
    assert len(_changes("rotate_encryption_keys")) == 1


def test_rotation__accepts_a_loss__is_an_entry_of_no_project(db: None) -> None:
    call_command("rotate_encryption_keys", accept_loss=True)
    assert (None, "encryption", {"accepted_loss": [None, True]}) in _changes("rotate_encryption_keys")


def test_rotation__that_never_ends__what_it_rotated_is_recorded(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotate_encryption_keys, "_PASSES", 1)
    with pytest.raises(CommandError, match="keep appearing"):
        call_command("rotate_encryption_keys")
    assert _changes("rotate_encryption_keys") == [(project.pk, "encryption", {"rotated_secrets": [None, 2]})]


def test_load_prices__first_and_again__one_entry_with_the_number(db: None) -> None:
    ModelPrice.objects.all().delete()
    call_command("load_prices")
    call_command("load_prices")

    [(project_id, kind, changes)] = _changes("load_prices")
    assert (project_id, kind) == (None, "price list")
    assert changes == {"added": [None, ModelPrice.objects.count()]}
