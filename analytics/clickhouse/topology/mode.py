"""The mode of the analytics store, CLICKHOUSE_MODE: which servers keep it, and who copies what between them.

- `single`: one server. Statements are sent as they are written.
- `replicated`: a database of the engine Replicated, which copies definitions to its servers by itself.
- `cloud`: ClickHouse Cloud, whose database does so as well, and whose servers are the cluster `default`.
- `cluster:NAME`: servers that the cluster NAME of their configuration lists; definitions are sent ON CLUSTER, and each
  shard has the rows of some projects. The name stands in the setting, because servers know several clusters.

https://clickhouse.com/docs/engines/database-engines/replicated
https://clickhouse.com/docs/sql-reference/distributed-ddl
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

# The suffix of the database whose tables stand for those of all shards.
ALL_SHARDS = "_all"
PATTERN = r"single|replicated|cloud|cluster:[A-Za-z_]\w*"
_CLOUD_CLUSTER = "default"


class Kind(StrEnum):
    SINGLE = "single"
    REPLICATED = "replicated"
    CLOUD = "cloud"
    CLUSTER = "cluster"


@dataclass(frozen=True)
class Mode:
    """`name` is empty except for the kind `cluster`, where it names the cluster."""

    kind: Kind
    name: str = ""

    @property
    def is_single(self) -> bool:
        return self.kind is Kind.SINGLE

    @property
    def suffix(self) -> str:
        return ALL_SHARDS if self.kind is Kind.CLUSTER else ""

    def cluster(self, database: str) -> str:
        """A Replicated database is a cluster of its own name."""
        return {Kind.CLUSTER: self.name, Kind.CLOUD: _CLOUD_CLUSTER, Kind.REPLICATED: database}.get(self.kind, "")

    def system(self, table: str, database: str) -> str:
        if self.is_single:
            return f"system.{table}"
        return f"clusterAllReplicas('{self.cluster(database)}', system.{table})"


_on_trial: ContextVar[bool] = ContextVar("on_trial", default=False)


def mode() -> Mode:
    return parse(settings.CLICKHOUSE_MODE)


@cache
def parse(text: str) -> Mode:
    if not re.fullmatch(PATTERN, text):
        raise ValueError(f"{text!r} is no mode of the analytics store")
    kind, _, name = text.partition(":")
    return Mode(Kind(kind), name)


@contextmanager
def on_trial() -> Iterator[None]:
    token = _on_trial.set(True)
    try:
        yield
    finally:
        _on_trial.reset(token)


def refuse_unproven() -> None:
    """Raises ImproperlyConfigured unless the mode was tested as a whole or the operator accepted it."""
    if mode().is_single or settings.ANALYTICS_UNPROVEN or _on_trial.get():
        return
    raise ImproperlyConfigured(
        f"CLICKHOUSE_MODE={settings.CLICKHOUSE_MODE} was never run on servers of its kind by those who wrote it. Run"
        " `manage.py prove_analytics` on yours; when it passes, set ANALYTICS_UNPROVEN=1."
    )
