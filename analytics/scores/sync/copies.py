"""Writes copies to ClickHouse, a chunk at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from analytics.clickhouse import client

CHUNK = 2000


def insert(table: str, columns: Sequence[str], copies: Sequence[tuple[Any, ...]]) -> None:
    if not copies:
        return
    # The token depends on the ids and versions of the rows alone, so that the same rows sent again are the same insert.
    place = columns.index("id"), columns.index("version")
    revisions = ",".join(f"{row[place[0]]}:{row[place[1]]}" for row in copies)
    client.insert(table, columns, copies, token=hashlib.sha256(revisions.encode()).hexdigest())
