from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.management.base import CommandError

from core.encryption.fernet import decrypt
from core.encryption.rotation import models_with_secrets
from core.models import ApiKey, EncryptionCanary, Project
from core.storage import place_of
from gateway.tables.alert import AlertSecret
from integrations.models import ProviderIntegration
from tests.config.backup.commands import backup, manifest_of, on_sqlite, restore, tables_of
from tests.factories.core import make_key
from tests.fakes.object_storage import BUCKET, object_storage


def emptied() -> None:
    call_command("flush", interactive=False, verbosity=0)


def test_configuration__to_sqlite_and_back_to_postgresql__has_the_same_rows(full: Project, tmp_path: Path) -> None:
    first = backup(tmp_path / "1", "--without-log")

    on_sqlite(tmp_path / "var", "restore", str(tmp_path / "1"))
    on_sqlite(tmp_path / "var", "backup", str(tmp_path / "2"), "--without-log")
    emptied()
    restore(tmp_path / "2")

    (second,) = (path.name for path in (tmp_path / "2").iterdir())
    assert manifest_of(tmp_path / "1", first)["database"] == "postgresql"
    assert manifest_of(tmp_path / "2", second)["database"] == "sqlite"
    third = backup(tmp_path / "3", "--without-log")
    expected = tables_of(tmp_path / "1", first)
    assert sum(rows for rows, _ in expected.values()) > len(expected)
    assert tables_of(tmp_path / "2", second) == expected
    assert tables_of(tmp_path / "3", third) == expected


def test_configuration__restored__takes_new_rows_behind_its_own(full: Project, place: Path) -> None:
    newest = ApiKey.objects.order_by("-pk").values_list("pk", flat=True)[0]
    backup(place, "--without-log")
    emptied()
    restore(place)

    assert make_key(Project.objects.get(pk=full.pk))[0].pk > newest
    assert ContentType.objects.create(app_label="test", model="new").pk > 0


def test_secrets__included__are_read_with_the_same_keys(full: Project, place: Path) -> None:
    backup(place, "--without-log")
    emptied()
    restore(place)

    integration = ProviderIntegration.objects.get(project_id=full.pk, provider="openai")
    assert decrypt(integration.encrypted_secret) == "sk-1234567890"


def test_secrets__left_out__are_nowhere_in_the_backup(full: Project, place: Path) -> None:
    held = [
        token
        for model in models_with_secrets()
        for name in getattr(model, "encrypted_fields", ())
        for token in model._base_manager.values_list(name, flat=True)
        if token
    ]
    name = backup(place, "--without-log", "--without-secrets")

    written = b"".join(gzip.decompress(file.read_bytes()) for file in (place / name).rglob("*.gz"))
    assert len(held) >= 3
    assert not [token for token in held if token.encode() in written]
    assert manifest_of(place, name)["secrets"] is False
    emptied()
    restore(place)
    integration = ProviderIntegration.objects.get(project_id=full.pk, provider="openai")
    assert integration.encrypted_secret == ""
    assert integration.base_url
    assert not EncryptionCanary.objects.exists()
    assert not AlertSecret.objects.exists()


def test_configuration__of_an_earlier_version__is_brought_to_this_one(full: Project, tmp_path: Path) -> None:
    place = tmp_path / "backups"
    name = backup(place, "--without-log")
    manifest = manifest_of(place, name)
    # The last migration of Django's accounts only widens a column, so that the rows are those of a version before it.
    assert manifest["migrations"]["auth"].pop().startswith("0012_")
    (place / name / "manifest.json").write_text(json.dumps(manifest))
    var_dir = tmp_path / "var"
    var_dir.mkdir()

    on_sqlite(var_dir, "restore", str(place))
    on_sqlite(var_dir, "backup", str(tmp_path / "again"), "--without-log")

    (again,) = (path.name for path in (tmp_path / "again").iterdir())
    assert tables_of(tmp_path / "again", again) == tables_of(place, name)
    assert len(manifest_of(tmp_path / "again", again)["migrations"]["auth"]) > len(manifest["migrations"]["auth"])


def test_database__of_a_later_version_than_the_backup__is_refused(full: Project, place: Path) -> None:
    name = backup(place, "--without-log")
    manifest = manifest_of(place, name)
    manifest["migrations"]["auth"].pop()
    (place / name / "manifest.json").write_text(json.dumps(manifest))
    emptied()

    with pytest.raises(CommandError, match="restore into a database without tables"):
        restore(place)


def test_configuration__in_object_storage__is_restored_from_there(
    full: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with object_storage() as environment:
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        place = f"s3://{BUCKET}/gateway"
        name = backup(place, "--without-log")
        emptied()
        restore(place)
        with pytest.raises(CommandError, match=f"s3://{BUCKET}/elsewhere: there is no backup"):
            restore(f"s3://{BUCKET}/elsewhere")
        with pytest.raises(CommandError, match="s3://absent/x: NoSuchBucket"):
            backup("s3://absent/x", "--without-log")

        assert Project.objects.get() == full
        assert place_of(place).folders() == [name]
