"""Makes the migration of a later column of the request log from the column's declaration.

A field of the record with `Since(number)` is a column that stores get by the migration of that number. It is added to
`requests`, to `ingest` and, unless it may name a person, to `anonymised`. The views between them read their source by
`*`, which the server expands only once, so each view gets its query again by MODIFY QUERY, which needs the view's
source.

Afterwards each view is renamed and renamed back. A table fed by a view deduplicates by the insert's token and the
view's name. After MODIFY QUERY the server uses the view's UUID instead until it restarts, so a batch retried after that
restart would be stored twice. Renaming a view makes the server use its name at once (seen with 26.9). `ingest` and
`anonymised` are away meanwhile, so that no batch is stored under another name. Every statement can run again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from analytics.request_log.columns import declared
from analytics.request_log.record import RequestRecord

_SOURCES = ("anonymised", "ingest")


@dataclass(frozen=True)
class LogColumn:
    number: int
    name: str
    type: str
    is_kept: bool

    def migration(self, earlier: Iterable[str]) -> str:
        return "".join(f"{statement};\n\n" for statement in self._statements(list(earlier)))

    def _statements(self, earlier: list[str]) -> Iterator[str]:
        tables = ("requests", "anonymised", "ingest") if self.is_kept else ("requests", "ingest")
        views = ("requests_mv", "anonymised_requests_mv") if self.is_kept else ("requests_mv",)
        back = [f"RENAME TABLE IF EXISTS {table}_closed TO {table}" for table in _SOURCES]
        # A run that was broken off has left other names.
        yield from back
        yield from (f"RENAME TABLE IF EXISTS {view}_renamed TO {view}" for view in views)
        yield from (f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {self.name} {self.type}" for table in tables)
        yield from (f"ALTER TABLE {view} MODIFY QUERY\n{_query(view, earlier)}" for view in views)
        yield from (f"RENAME TABLE IF EXISTS {table} TO {table}_closed" for table in reversed(_SOURCES))
        for view in views:
            yield f"RENAME TABLE IF EXISTS {view} TO {view}_renamed"
            yield f"RENAME TABLE IF EXISTS {view}_renamed TO {view}"
        yield from back


def later_columns(record: type[RequestRecord] = RequestRecord) -> list[LogColumn]:
    columns = declared(record).items()
    found = [LogColumn(one.since, name, one.type, one.is_kept) for name, one in columns if one.since]
    return sorted(found, key=lambda column: column.number)


def _query(view: str, texts: Iterable[str]) -> str:
    given = re.compile(
        rf"(?:VIEW IF NOT EXISTS {view} TO \w+ AS|ALTER TABLE {view} MODIFY QUERY)\n(.+?);$", re.M | re.S
    )
    queries: list[str] = [query for text in texts for query in given.findall(text)]
    return queries[-1]
