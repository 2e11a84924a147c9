from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from analytics.clickhouse import client
from benchmarks.analytics_report import QueryTimes
from benchmarks.analytics_store import Store


@dataclass(slots=True)
class Query:
    """Sums over all runs of one query, in seconds; CPU is the engine's."""

    name: str
    runs: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def per_call(self, calls: int) -> QueryTimes:
        return QueryTimes(self.name, self.runs / calls, self.seconds * 1000 / calls, self.cpu_seconds * 1000 / calls)


class Watched(list[Query]):
    """The watched queries, in the order of their first runs."""

    def of(self, name: str) -> Query:
        found = next((query for query in self if query.name == name), None)
        if found is None:
            found = Query(name)
            self.append(found)
        return found


@contextmanager
def watched(measured: Store) -> Iterator[Watched]:
    queries, ask = Watched(), client.query

    def query(*arguments: Any, name: str, **options: Any) -> Any:
        started, cpu = time.perf_counter(), measured.cpu_seconds()
        try:
            return ask(*arguments, name=name, **options)
        finally:
            one = queries.of(name)
            one.runs += 1
            one.seconds += time.perf_counter() - started
            one.cpu_seconds += measured.cpu_seconds() - cpu

    client.query = query
    try:
        yield queries
    finally:
        client.query = ask
