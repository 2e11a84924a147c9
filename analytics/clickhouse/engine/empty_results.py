"""Remembers the columns of results without rows.

chDB returns nothing at all for no rows, while a client wants the columns. To describe a query means to analyse it
again, which of a query of milliseconds is most of its time; the same few queries are asked with other parameters.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping

from analytics.clickhouse.engine.native_blocks import Column

_MAX_QUERIES = 512
_MAX_CHARACTERS = 20_000
# A parameter that names a column or a table decides on the columns, and one that is a column by itself on its name.
_NAMES = re.compile(r"\{\s*\w+\s*:\s*Identifier\s*\}")
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.]*\Z")


class EmptyResults:
    """The columns of queries by their text and settings, until a statement may have changed a table.

    Other values of the parameters may change the scale or the time zone of a type, which matters to nobody who has no
    value of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._columns: OrderedDict[tuple[str, ...], tuple[Column, ...]] = OrderedDict()
        self._changes = 0

    def columns(
        self,
        text: str,
        session: tuple[str, ...],
        settings: Mapping[str, str],
        describe: Callable[[], tuple[Column, ...]],
    ) -> tuple[Column, ...]:
        """Returns the columns of a query, as `describe` gives them. `session` are the statements in whose session it is
        asked."""
        key = (text, *session, *(part for setting in sorted(settings.items()) for part in setting))
        if sum(map(len, key)) > _MAX_CHARACTERS or _NAMES.search(text):
            return describe()
        with self._lock:
            if key in self._columns:
                self._columns.move_to_end(key)
                return self._columns[key]
            changes = self._changes
        columns = describe()
        is_known = all(_PLAIN_NAME.match(column.name) for column in columns)
        with self._lock:
            # A change of a table meanwhile may have come after the columns.
            if is_known and changes == self._changes:
                self._columns[key] = columns
                if len(self._columns) > _MAX_QUERIES:
                    self._columns.popitem(last=False)
        return columns

    def forget(self) -> None:
        """Forgets all columns: a statement that is none to read has ended, and may have changed a table."""
        with self._lock:
            self._columns.clear()
            self._changes += 1
