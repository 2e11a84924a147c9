"""The migration of a later column of the request log, made from the column's declaration.

A field of the record with `Since(number)` is a column that stores get by the migration of that number. It is added to
`requests`, to `ingest` and, unless it may name a person, to `anonymised`. The views between them read their source by
`*`, which the server reads once, so that they get their queries again; MODIFY QUERY needs the view's source.

Afterwards each view is renamed and gets its name back. A table that a view feeds knows a batch by the token of its
insert and by the view, which the server calls by its name; but from MODIFY QUERY until the server's next start it calls
it by its UUID, so that a batch which was sent again after that start would be stored twice. A view that is renamed is
called by its name at once (seen with 26.9). `ingest` and `anonymised` are away meanwhile, so that no batch is stored
under another name. Every statement can run again.
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
        """Returns the text of the migration, for a store with the migrations of the texts `earlier`."""
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
    """Returns the columns that stores get by migrations, in the order of their numbers."""
    columns = declared(record).items()
    found = [LogColumn(one.since, name, one.type, one.is_kept) for name, one in columns if one.since]
    return sorted(found, key=lambda column: column.number)


def _query(view: str, texts: Iterable[str]) -> str:
    """Returns the query of a view after the last of the migrations that gives it one."""
    given = re.compile(
        rf"(?:VIEW IF NOT EXISTS {view} TO \w+ AS|ALTER TABLE {view} MODIFY QUERY)\n(.+?);$", re.M | re.S
    )
    queries: list[str] = [query for text in texts for query in given.findall(text)]
    return queries[-1]
