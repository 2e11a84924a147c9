from __future__ import annotations

import pytest

from core.ui import panels
from tests.waiting import TIMEOUT_SECONDS


@pytest.fixture(autouse=True)
def store_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the first byte of a page wait for the store however busy the machine is."""
    monkeypatch.setattr(panels, "FIRST_BYTE_SECONDS", TIMEOUT_SECONDS)
