"""The tables of the SQL database as files: gzip, a first line with the columns, then a line of JSON per row.

Rows have the columns' own values, not model objects. So Django's historical models read a backup of an earlier version,
times keep their microseconds, and many-to-many relations, content types and permissions are tables like all others,
with their ids.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, TypeVar
from uuid import UUID

from django.apps.registry import Apps
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connections
from django.db.models import Field, Model

from config.backup.errors import BackupError

SUFFIX = ".jsonl.gz"
T = TypeVar("T")

# Sessions of browsers end with a restore: people sign in again. What says which hosts live, what they hold and what
# they have run lately is of no use to others.
_LEFT_OUT = frozenset(
    {"sessions.Session", "core.PersonSession", "analytics.RepairLease", "core.Host", "core.Lease", "core.ScheduledRun"}
)
_ROWS_AT_ONCE = 500


def models_of(apps: Apps) -> list[type[Model]]:
    found = apps.get_models(include_auto_created=True)
    kept = (model for model in found if model._meta.managed and model._meta.label not in _LEFT_OUT)
    return sorted(kept, key=lambda model: model._meta.label)


def file_of(model: type[Model]) -> str:
    return f"configuration/{model._meta.label}{SUFFIX}"


def write_table(model: type[Model], file: Path, *, using: str, secrets: bool, count: Callable[[int], object]) -> int:
    """Writes the rows by id and returns their number.

    Without `secrets` an encrypted column is empty; if it may not be, its row is left out.
    """
    columns = [column.attname for column in _columns(model)]
    hidden = () if secrets else getattr(model, "encrypted_fields", ())
    is_left_out = any(not getattr(model._meta.get_field(name), "blank", False) for name in hidden)
    rows = 0
    with _compressed(file) as output:
        output.write(json.dumps(columns) + "\n")
        for page in () if is_left_out else _pages(model, columns, using):
            for row in page:
                values = {**dict(zip(columns, row, strict=True)), **dict.fromkeys(hidden, "")}
                output.write(json.dumps([values[column] for column in columns], default=_plain) + "\n")
            rows += len(page)
            count(len(page))
    return rows


def read_table(model: type[Model], file: Path, *, using: str, count: Callable[[int], object]) -> int:
    """Inserts a file's rows and returns their number; sends no signals and fills in no columns.

    Raises BackupError with the line that cannot be inserted.
    """
    name = file_of(model)
    fields = {field.attname: field for field in _columns(model)}
    with _opened(file, name) as (columns, lines):
        if unknown := set(columns) - set(fields):
            raise BackupError(f"{name}, line 1: {min(unknown)} is no column of this table.")
        chosen = [fields[column] for column in columns]
        rows = 0
        for page in _portions(lines, _ROWS_AT_ONCE):
            try:
                _insert(model, chosen, [json.loads(line) for line in page], using)
            except (DatabaseError, ValidationError, ValueError, TypeError) as error:
                place = f"{name}, lines {rows + 2} to {rows + 1 + len(page)}"
                raise BackupError(f"{place}: {' '.join(str(error).split())}") from error
            rows += len(page)
            count(len(page))
    return rows


def column_values(file: Path, name: str, *names: str) -> Iterator[tuple[Any, ...]]:
    with _opened(file, name) as (columns, lines):
        places = [columns.index(column) for column in names]
        for line in lines:
            row = json.loads(line)
            yield tuple(row[place] for place in places)


@contextmanager
def _opened(file: Path, name: str) -> Iterator[tuple[list[str], Iterator[str]]]:
    try:
        with gzip.open(file, "rt", encoding="ascii") as lines:
            columns = json.loads(next(lines, "null"))
            if not isinstance(columns, list) or not all(isinstance(one, str) for one in columns):
                raise BackupError(f"{name}, line 1: has no names of columns.")
            yield columns, lines
    except (OSError, EOFError, zlib.error, ValueError, LookupError) as error:
        raise BackupError(f"{name} cannot be read as a table: {' '.join(str(error).split())}.") from error


def empty_tables(models: Iterable[type[Model]], *, using: str) -> None:
    """Deletes all rows. Call it in a transaction, whose end checks foreign keys."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for model in models:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(model._meta.db_table)}")  # noqa: S608 - names of models


@contextmanager
def _compressed(file: Path) -> Iterator[TextIO]:
    """Omits gzip's name and time, so that the same rows make the same file."""
    with (
        file.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=5, fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="ascii") as output,
    ):
        yield output


def _columns(model: type[Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if not field.generated]


def _pages(model: type[Model], columns: Sequence[str], using: str) -> Iterator[list[tuple[Any, ...]]]:
    """Avoids server-side cursors, which a connection pooler would not allow."""
    key = columns.index(model._meta.pk.attname)
    rows, last = model._base_manager.using(using).order_by("pk"), None
    while True:
        found = rows if last is None else rows.filter(pk__gt=last)
        page = list(found.values_list(*columns)[:_ROWS_AT_ONCE])
        if page:
            yield page
        if len(page) < _ROWS_AT_ONCE:
            return
        last = page[-1][key]


def _insert(model: type[Model], fields: list[Field[Any, Any]], rows: list[list[Any]], using: str) -> None:
    objects = [
        model(**{field.attname: field.to_python(value) for field, value in zip(fields, row, strict=True)})
        for row in rows
    ]
    size = connections[using].ops.bulk_batch_size(fields, objects) or len(objects)
    for some in _portions(objects, size):
        # Raw rows, as `loaddata` inserts them one by one: `auto_now` columns keep the values of the backup.
        model._base_manager._insert(some, fields=fields, using=using, raw=True)  # type: ignore[attr-defined]


def _portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(items)
    while portion := list(islice(remaining, size)):
        yield portion


def _plain(value: Any) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise TypeError(f"a column holds a value of the type {type(value).__name__}, which no backup can hold")
