from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from config.monitor.subjects import DISK
from tests.small_disk import SmallDisk, small_disk


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "small", 8 << 20) as disk:
        yield disk


@pytest.fixture
def settings_here(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    settings.VAR_DIR = settings.GATEWAY_FILE_DIR = tmp_path
    settings.SPOOL_DIR = tmp_path / "spool"
    settings.CLICKHOUSE_URL, settings.REDIS_IS_EMBEDDED = None, True
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "db.sqlite3")}
    for name, value in database.items():
        monkeypatch.setitem(settings.DATABASES["default"], name, value)
    # More than the small file system has, and less than that of the tests.
    settings.DISK_LOW_BYTES = 16 << 20
    return settings


def _alarms() -> dict[str, str]:
    return {alarm.subject: alarm.text for alarm in DISK.alarms(DISK.ask())}


def _shown() -> set[str]:
    return {sample.labels["folder"] for metric in DISK.metrics(DISK.ask()) for sample in metric.samples}


def test_disk__all_on_one_file_system__one_figure_of_it(settings_here: Settings) -> None:
    assert _shown() == {"VAR_DIR"}
    assert _alarms() == {}


def test_disk__spool_elsewhere__alarm_names_it(settings_here: Settings, small: SmallDisk) -> None:
    settings_here.SPOOL_DIR = small.path / "spool"

    assert _shown() == {"VAR_DIR", "SPOOL_DIR"}
    assert _alarms() == {"SPOOL_DIR": "8 MiB are left for SPOOL_DIR."}


@pytest.mark.parametrize("store", ["redis", "clickhouse"])
def test_disk__data_of_an_embedded_store_elsewhere__alarm_names_it(
    settings_here: Settings, small: SmallDisk, tmp_path: Path, store: str
) -> None:
    (tmp_path / store).symlink_to(small.path, target_is_directory=True)

    assert _alarms().keys() == {f"VAR_DIR/{store}"}
    settings_here.CLICKHOUSE_URL, settings_here.REDIS_IS_EMBEDDED = "clickhouse://127.0.0.1:1/llm", False
    assert _alarms() == {}


def test_disk__sqlite_database_elsewhere__alarm_names_its_variable(settings_here: Settings, small: SmallDisk) -> None:
    settings_here.DATABASES["default"]["NAME"] = str(small.path / "db.sqlite3")

    assert _alarms().keys() == {"DATABASE_URL"}
