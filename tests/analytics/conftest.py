from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    directory = tmp_path / "spool"
    directory.mkdir()
    return directory
