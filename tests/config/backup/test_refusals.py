from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import DjangoDbBlocker, Settings

from config.deployment import postgresql as deployment_postgresql
from core.encryption.canary import UnfinishedRestoreError, check_canary, ensure_canary
from core.models import AuditEntry, Project
from tests.config.backup.commands import backup, restore
from tests.factories.core import make_project
from tests.factories.everything import one_of_everything
from tests.tables.cases import tabled

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def backed_up(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    place = tmp_path_factory.mktemp("backups")
    with django_db_blocker.unblock():
        ensure_canary()
        one_of_everything(make_project())
        name = backup(place, "--without-log")
        call_command("flush", interactive=False, verbosity=0)
    return place / name


@pytest.fixture
def made(transactional_db: None, backed_up: Path, place: Path) -> Path:
    shutil.copytree(backed_up, place / backed_up.name)
    return place / backed_up.name


def refused(place: Path | str, *words: str) -> str:
    with pytest.raises(CommandError) as caught:
        restore(place, *words)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    return sentence


def changed(**values: Any) -> Damage:
    def change(folder: Path) -> None:
        file = folder / "manifest.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **values}))

    return change


def written(text: str) -> Damage:
    return lambda folder: (folder / "manifest.json").write_text(text)


def shortened(name: str) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-1])


def spoilt(name: str) -> Damage:
    def spoil(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[-1] ^= 1
        (folder / name).write_bytes(data)

    return spoil


def renamed(name: str) -> Damage:
    """Has the manifest name its first file differently, as a forged one could."""

    def rename(folder: Path) -> None:
        files = json.loads((folder / "manifest.json").read_text())["files"]
        changed(files=[{**files[0], "name": name}, *files[1:]])(folder)

    return rename


PROJECTS = "configuration/core.Project.jsonl.gz"
DAMAGED = [
    (lambda folder: (folder / "manifest.json").unlink(), "there is no manifest.json: it is torn, or no backup."),
    (written('{"product": "prompt-ga'), "manifest.json is torn."),
    (written("[]"), "manifest.json is not one of this product."),
    (changed(product="another"), "manifest.json is of 'another', not of prompt-gateway."),
    (changed(format=2, version="9.9"), "the backup has a later format than this version reads: use 9.9."),
    (changed(files="all"), "manifest.json: Expected `array`, got `str` - at `$.files`."),
    (
        changed(migrations={"core": ["0099_later"]}, version="9.9"),
        "the backup is of a later version, 9.9 (this one does not know core.0099_later): restore it with that version.",
    ),
    (renamed("../../outside.jsonl.gz"), "names the file '../../outside.jsonl.gz', which is none of a backup."),
    (renamed("/etc/hostname"), "names the file '/etc/hostname', which is none of a backup."),
    (
        changed(request_log={"database": "llm", "clickhouse": "1", "migrations": [], "objects": {"a/../../b": 1}}),
        "names the file 'a/../../b', which is none of a backup.",
    ),
    (changed(files=[]), "manifest.json lacks configuration/core.EncryptionCanary.jsonl.gz."),
    (lambda folder: (folder / PROJECTS).unlink(), f"{PROJECTS} is missing."),
    (shortened(PROJECTS), "bytes instead of"),
    (spoilt(PROJECTS), f"{PROJECTS} is damaged: its SHA-256 is not that of the manifest."),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGED, ids=[sentence[:30] for _, sentence in DAMAGED])
def test_restore__torn_foreign_or_newer__is_refused(made: Path, damage: Damage, sentence: str) -> None:
    damage(made)

    said = refused(made.parent, "--name", made.name)

    assert said.startswith(f"{made}: ")
    assert sentence in said
    assert not Project.objects.exists()


def test_restore__database_in_use__is_refused(full: Project, place: Path) -> None:
    backup(place, "--without-log")

    said = refused(place)

    assert said.startswith("The SQL database is in use: core_project has rows.")
    assert Project.objects.get() == full


def test_restore__with_other_encryption_keys__is_refused(made: Path, settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    said = refused(made.parent)

    assert said.startswith("ENCRYPTION_KEYS has none of the keys that the backup's secrets are encrypted with")
    assert not Project.objects.exists()


@tabled
def test_restore__of_no_place__is_refused(transactional_db: None, place: str, sentence: str) -> None:
    assert refused(place) == sentence


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"no gzip", "cannot be read as a table: Not a gzipped file"),
        (gzip.compress(b'["id", "name"]\n["a"]')[:-12], "cannot be read as a table: "),
        (gzip.compress(b""), "line 1: has no names of columns."),
        (gzip.compress(b'["id"'), "cannot be read as a table: "),
        (gzip.compress(b'["id", "none"]\n'), "line 1: none is no column of this table."),
        (gzip.compress(b'["id", "name"]\n["a"]\n'), "lines 2 to 2: "),
    ],
)
def test_restore__file_that_is_no_table__is_refused(
    made: Path, content: bytes, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.backup.manifest.check_file", lambda *_: None)
    (made / PROJECTS).write_bytes(content)

    said = refused(made.parent)

    assert said.startswith(PROJECTS)
    assert sentence in said
    assert not Project.objects.exists()


def test_restore__killed_before_its_end__leaves_a_database_that_nobody_serves(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def looked_at(_: object, __: object) -> None:
        with pytest.raises(UnfinishedRestoreError):
            ensure_canary()
        found.extend(problem.message for problem in deployment_postgresql.check() if problem.check == "secrets")

    monkeypatch.setattr("config.backup.restoring.Restore._finish", looked_at)
    restore(made.parent)

    [message] = found
    assert message.startswith("A restore into this database has not come to its end")
    check_canary()


def test_restore__rows_that_break_a_constraint__leaves_the_database_empty(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.backup.manifest.check_file", lambda *_: None)
    (made / PROJECTS).write_bytes((made / "configuration/core.Team.jsonl.gz").read_bytes())

    said = refused(made.parent)

    assert said.startswith("core.Project.jsonl.gz") or "core.Project" in said
    assert not Project.objects.exists()


def test_backup__into_a_file__is_refused(full: Project, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(CommandError, match="Not a directory"):
        backup(tmp_path / "file", "--without-log")


def test_backup__keep__removes_the_oldest_of_its_kind(full: Project, place: Path) -> None:
    first = backup(place, "--without-log")
    for name in ("20260101T000000Z", "20260102T000000Z", "20260103T000000Z"):
        shutil.copytree(place / first, place / name)
    log = {"database": "llm", "clickhouse": "26.9", "migrations": []}
    changed(request_log=log)(place / "20260101T000000Z")
    shutil.rmtree(place / first)
    (place / "torn").mkdir()

    newest = backup(place, "--without-log", "--keep", "2")

    assert sorted(path.name for path in place.iterdir()) == ["20260101T000000Z", "20260103T000000Z", newest, "torn"]


def test_backup__made_removed_and_restored__is_in_the_audit_log_of_the_installation(full: Project, place: Path) -> None:
    first = backup(place, "--without-log")
    shutil.move(place / first, place / "20260101T000000Z")
    newest = backup(place, "--without-log", "--keep", "1")
    written = [(row.project_id, row.actor_name, row.object_id, row.action) for row in AuditEntry.objects.order_by("pk")]
    assert written[-2:] == [
        (None, "backup", newest, "created"),
        (None, "backup", "20260101T000000Z", "deleted"),
    ]
    call_command("flush", interactive=False, verbosity=0)
    restore(place)

    last = AuditEntry.objects.latest("pk")
    assert (last.project_id, last.operation, last.summary) == (None, "restore", f"Backup '{place / newest}' restored")
