"""Rows that a whole module reads, made once. To make a world of rows takes longer than most tests that look at it."""

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
    """Has what `make` puts into the stores be there until a module ends, and returns what it returns. The folder that
    it gets is for a spool."""

    def __call__(self, make: Callable[[Path], T]) -> T: ...


@contextmanager
def rows_kept(blocker: DjangoDbBlocker, make: Callable[[], T]) -> Iterator[T]:
    """Has what `make` puts into the database be there meanwhile, and gives what it returns.

    Each test is a savepoint in this transaction, as with Django's `setUpTestData`: what a test changes, no other one
    sees.
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
    """Removes all rows of the analytics store."""
    filled = client.execute(
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
        " AND name != 'schema_migrations' AND total_rows > 0"
    )
    for (table,) in filled:
        client.execute(f"TRUNCATE TABLE `{table}`")
