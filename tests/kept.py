"""Rows that a whole module reads, made once: a world of rows takes longer to make than most tests that look at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from django.db import transaction
from pytest_django import DjangoDbBlocker

from analytics.clickhouse import client

T = TypeVar("T")


class Keep(Protocol):
    """Keeps what `make` stores until a module ends, and returns its result. `make` gets a folder for a spool."""

    def __call__(self, make: Callable[[Path], T]) -> T: ...


@contextmanager
def rows_kept(blocker: DjangoDbBlocker, make: Callable[[], T]) -> Iterator[T]:
    """Keeps what `make` puts into the database during the block, and yields its result.

    Each test is a savepoint in this transaction, as with Django's `setUpTestData`: no test sees another's changes.
    """
    with blocker.unblock(), ExitStack() as stack:
        stack.enter_context(transaction.atomic())
        rows = make()
        stack.callback(transaction.set_rollback, True)
        undoing = stack.pop_all()
    yield rows
    with blocker.unblock():
        undoing.close()


def empty_tables() -> None:
    filled = client.execute(
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
        " AND name != 'schema_migrations' AND total_rows > 0"
    )
    for (table,) in filled:
        client.execute(f"TRUNCATE TABLE `{table}`")
