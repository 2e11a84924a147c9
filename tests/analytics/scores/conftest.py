from __future__ import annotations

from typing import Any

import pytest

from analytics.clickhouse import client


@pytest.fixture
def store_away(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the store unreachable, until `undo` of the patch."""
    client.close()
    monkeypatch.setattr(client, "resolve_url", lambda: "clickhouse://127.0.0.1:1/llm")
    yield monkeypatch
    client.close()
