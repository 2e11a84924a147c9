from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytest_django import Settings

from config.deployment import host
from config.deployment.problem import Problem

GIB, MIB = 1 << 30, 1 << 20


@pytest.fixture
def var(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.VAR_DIR, settings.SPOOL_DIR = tmp_path, tmp_path / "spool"
    settings.GATEWAY_FILE_DIR = tmp_path
    monkeypatch.setitem(settings.DATABASES["default"], "NAME", str(tmp_path / "db.sqlite3"))
    return tmp_path


@pytest.mark.parametrize(("free", "is_fatal"), [(GIB, False), (100 * MIB, True)])
def test_disk__little_room__said_once_for_what_is_on_it(
    var: Path, monkeypatch: pytest.MonkeyPatch, free: int, is_fatal: bool
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))

    assert list(host.check()) == [Problem("disk", f"VAR_DIR {var} has {free // MIB} MiB left.", is_fatal)]


def test_disk__of_the_spool_alone_is_full__is_named(
    var: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spool is on a file system of its own here, which nobody can write to."""
    settings.SPOOL_DIR = Path("/proc/spool")
    rooms = {var: 9 * GIB, Path("/proc"): 0}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=rooms[path]))
    monkeypatch.setattr(os, "access", lambda *_: True)

    assert list(host.check()) == [Problem("disk", "SPOOL_DIR /proc/spool has 0 MiB left.")]


def test_disk__folder_that_cannot_be_made__is_named(var: Path, settings: Settings) -> None:
    settings.SPOOL_DIR = Path("/dev/null/spool")

    assert Problem("disk", "SPOOL_DIR /dev/null/spool cannot be written.") in list(host.check())
