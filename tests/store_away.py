from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.test import override_settings

from analytics.clickhouse import client


@contextmanager
def store_away() -> Iterator[None]:
    """Nobody listens at the store's address meanwhile."""
    client.close()
    with override_settings(CLICKHOUSE_URL="clickhouse://default@127.0.0.1:1/llm"):
        yield
    client.close()
