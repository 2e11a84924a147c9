"""Writes a generated history into the analytics store.

The engine itself draws and unfolds the sessions, in one INSERT … SELECT for each slice of the period: only the plan
leaves this process, and like real rows they go through `ingest` into every table behind it. All chance comes from
hashes of the seed, so the same plan writes the same rows. Every block has a token, so writing it again changes nothing
while the store remembers the token (its last 10,000 blocks per table).
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID, uuid4

import msgspec
from django.conf import settings

from analytics.clickhouse import client
from analytics.traffic.catalogue import MODELS
from analytics.traffic.expansion import Period, constants, of_slice, statement
from analytics.traffic.rhythm import MAX_TEXT_SLICE, Slice, slices
from analytics.traffic.texts import Exchange, Texts

MAX_SESSION = 20_000
_MARATHON_SHARE = 10  # The longest session has at most one in this many requests.
_MARATHON_DAYS = 30
_REQUESTS_PER_USER = 120
_MIN_USERS = 25
_MAX_USERS = 60_000

# Rows of logs are wide, so that only some of the sessions get them.
_SESSIONS_PER_LOGGED = 5
_BLOCK_BYTES = 100_000_000
# The number of blocks written at once. One thread of the engine writes a block, and merges take part of a second one.
_WORKERS = 2

# Each insert reads and writes one block: blocks of sources and joins would each become a part of every table.
_SETTINGS = {
    "max_threads": 1,
    "max_insert_threads": 1,
    "max_block_size": 1_000_000,
    "preferred_block_size_bytes": 0,
    "min_insert_block_size_rows": 1_000_000,
    "min_insert_block_size_bytes": 0,
    "max_partitions_per_insert_block": 0,
    "optimize_on_insert": 1,
    "async_insert": 0,
    "insert_deduplicate": 1,
    "deduplicate_blocks_in_dependent_materialized_views": 1,
    "parallel_view_processing": 1,
}
Job = TypeVar("Job")
Result = TypeVar("Result")


# The table in memory that holds the texts while traffic is generated, and is dropped afterwards.
#
# The table of a killed command is empty after the store's next start.

_TEXT_COLUMNS = (
    "prompt_head", "prompt_tail", "request_head", "request_tail", "answer", "answer_json", "begun_answer", "begun_json",
)  # fmt: skip
_ROWS = 200


@dataclass(frozen=True, slots=True)
class TextTable:
    name: str

    @property
    def sizes(self) -> str:
        nothing = ", ".join(f"'' AS {column}" for column in _TEXT_COLUMNS)
        return f"(SELECT id, prompt_size, answer_size, {nothing} FROM {self.name})"


@contextmanager
def text_table(texts: Texts) -> Iterator[TextTable]:
    # Each table has a unique name, since two commands may run at once.
    table = TextTable(f"traffic_texts_{uuid4().hex[:12]}")
    try:
        _fill(table.name, texts.exchanges)
        yield table
    finally:
        client.execute(f"DROP TABLE IF EXISTS {table.name} SYNC")


def _fill(name: str, exchanges: Sequence[Exchange]) -> None:
    columns = ", ".join(f"{column} String" for column in _TEXT_COLUMNS)
    client.execute(
        f"CREATE TABLE {name} (id UInt32, prompt_size UInt32, answer_size UInt32, {columns}) ENGINE = Memory"
    )
    rows = [
        (number, one.prompt_tokens, one.answer_tokens, *(getattr(one, column) for column in _TEXT_COLUMNS))
        for number, one in enumerate(exchanges)
    ]
    for first in range(0, len(rows), _ROWS):
        chunk = rows[first : first + _ROWS]
        client.insert(name, ("id", "prompt_size", "answer_size", *_TEXT_COLUMNS), chunk, token=f"{name}:{first}")


@dataclass(frozen=True, slots=True)
class Plan:
    """A history to generate: `requests` of `project` in the `days` before `end`.

    Sessions that begin in the last `text_days` have texts.
    """

    project: UUID
    requests: int
    end: datetime
    days: int
    text_days: int
    seed: int
    api_keys: Sequence[int] = (0,)

    @property
    def period(self) -> Period:
        start = self.end - timedelta(days=self.days)
        return Period(start, self.end, self.end - timedelta(days=self.text_days))

    @property
    def marathon(self) -> int:
        return min(MAX_SESSION, self.requests // _MARATHON_SHARE)

    def salt(self) -> int:
        """The seed of all chance: it depends on the arguments, but not on the project."""
        described = repr((self.seed, self.requests, self.end, self.days, self.text_days))
        return int.from_bytes(hashlib.sha256(described.encode()).digest()[:8], "big")

    def fingerprint(self, texts: Texts) -> str:
        exchanges = msgspec.json.encode([one.request_head + one.answer for one in texts.exchanges])
        described = repr((self.salt(), self.project, tuple(self.api_keys), MODELS))
        return hashlib.sha256(described.encode() + exchanges).hexdigest()[:32]


def generate(plan: Plan, texts: Texts, *, written: Callable[[int], object]) -> None:
    mark = plan.fingerprint(texts)
    users = min(max(plan.requests // _REQUESTS_PER_USER, _MIN_USERS), _MAX_USERS)
    shared = constants(
        project=plan.project,
        salt=plan.salt(),
        users=users,
        api_keys=list(plan.api_keys),
        texts=texts,
        period=plan.period,
    )
    blocks = list(_blocks(plan, texts))
    with text_table(texts) as table:

        def write(block: tuple[str, Slice]) -> int:
            drawn, one = block
            for what, one_in in _kinds(plan, one):
                with_texts = one.with_texts and what == "requests"
                sql = statement(what, drawn, texts=table.name if with_texts else table.sizes)
                values = {**shared, **of_slice(one), "with_texts": with_texts, "one_in": one_in}
                token = f"traffic:{mark}:{what}:{one.number}"
                client.execute(sql, values, {**_SETTINGS, "insert_deduplication_token": token})
            return one.requests

        with closing(in_order(write, blocks, workers=_WORKERS)) as results:
            for requests in results:
                written(requests)


def _kinds(plan: Plan, one: Slice) -> Iterator[tuple[str, int]]:
    """Yields each kind of rows with n: one of n sessions has such rows. Telemetry has its own, shorter retention."""
    yield "requests", 1
    if one.borders[-1] > plan.period.until - timedelta(days=settings.TELEMETRY_RETENTION_DAYS):
        yield "logs", _SESSIONS_PER_LOGGED


def _blocks(plan: Plan, texts: Texts) -> Iterator[tuple[str, Slice]]:
    period = plan.period
    largest = max(1, min(MAX_TEXT_SLICE, _BLOCK_BYTES // texts.bytes_per_request))
    for one in slices(
        plan.requests - plan.marathon,
        period.since,
        period.until,
        texts_from=period.texts_from,
        seed=plan.seed,
        largest_with_texts=largest,
    ):
        yield "drawn", one
    if plan.marathon:
        since = max(period.since, period.until - timedelta(days=_MARATHON_DAYS))
        with_texts = since >= period.texts_from and plan.marathon <= largest
        yield "marathon", Slice(0, plan.marathon, (since, period.until), (0.0, 1.0), with_texts)


def in_order(run: Callable[[Job], Result], jobs: Sequence[Job], *, workers: int) -> Generator[Result]:
    """Yields the results in the order of `jobs`, which start in that order. After an error no further job starts."""
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Result]] = deque(pool.submit(run, job) for job in jobs)
        try:
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
