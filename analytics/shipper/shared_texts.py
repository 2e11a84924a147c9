"""Stores the texts that requests share before the requests, each once as long as this process remembers it.

A text is stored again whenever that is uncertain: its id is a hash, so that copies do no harm. An erasure removes the
texts that no request has any more, and may not see a request that is on its way here. It counts itself first
(`text_erasures`), so a shipper that finds another count after the requests are stored knows that some of their texts
may be gone, and stores all of them again with that count. Erasures remove only copies with a lower one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from analytics.clickhouse import client
from analytics.request_log.columns import TEXTS_KEPT_DAYS, Columns, rows_of, values_of
from analytics.shipper.splitting import Divided, SharedText

_DAY = 86_400_000_000
_EPOCH = date(1970, 1, 1)
# Some 25 MB. What is forgotten is stored again.
_MAX_KNOWN = 100_000
_EPOCHS = """
SELECT project_id, count() FROM text_erasures WHERE project_id IN {projects:Array(UUID)} GROUP BY project_id
"""


class _Copy(NamedTuple):
    """A text lives as long as a request that has it, so that each day of expiry needs a copy."""

    project_id: UUID
    text_id: UUID
    drop_date: date


class StoreInserts:
    """Inserts batches, each of which has the texts of its requests in a column `shared_texts` if there are any.

    `before_rows` is called when all is done that comes before the insert of the rows, which begins at once then.
    """

    def __init__(self, before_rows: Callable[[], None] = lambda: None) -> None:
        self._before_rows = before_rows
        self._known: OrderedDict[_Copy, None] = OrderedDict()
        self._epochs: dict[UUID, int] = {}

    def __call__(self, columns: Columns, token: str) -> None:
        if not columns:
            return
        rows = {name: values for name, values in columns.items() if name != "shared_texts"}
        rows["figures_later"] = [True] * rows_of(columns)
        wanted = dict(_copies(columns)) if "shared_texts" in columns else {}
        self._store({copy: parts for copy, parts in wanted.items() if copy not in self._known})
        self._before_rows()
        client.insert_columns("ingest", rows, token=token)
        if erased := self._projects_with_erasures({copy.project_id for copy in wanted}):
            self._known = OrderedDict.fromkeys(copy for copy in self._known if copy.project_id not in erased)
            self._store({copy: parts for copy, parts in wanted.items() if copy.project_id in erased})
        self._remember(wanted)

    def _store(self, copies: Mapping[_Copy, Divided]) -> None:
        if not copies:
            return
        texts = _texts(copies)
        columns: dict[str, Sequence[Any]] = {
            "project_id": [copy.project_id for copy in copies],
            "text_id": [copy.text_id for copy in copies],
            "epoch": [self._epochs.get(copy.project_id, 0) for copy in copies],
            "drop_date": [copy.drop_date for copy in copies],
            "prompt": [texts[copy.text_id].prompt for copy in copies],
            "request": [texts[copy.text_id].request for copy in copies],
        }
        # Which texts a second try stores depends on what is remembered, so that it is not the same insert.
        client.insert_columns("shared_texts", columns, token=uuid4().hex)

    def _projects_with_erasures(self, projects: Collection[UUID]) -> set[UUID]:
        if not projects:
            return set()
        asked = {"projects": [str(one) for one in projects]}
        found = dict(client.execute(_EPOCHS, asked, fresh=("text_erasures",)))
        changed = {one for one in projects if found.get(one, 0) != self._epochs.get(one, 0)}
        self._epochs |= {one: found.get(one, 0) for one in changed}
        return changed

    def _remember(self, copies: Collection[_Copy]) -> None:
        for copy in copies:
            self._known[copy] = None
            self._known.move_to_end(copy)
        for copy in list(islice(self._known, max(len(self._known) - _MAX_KNOWN, 0))):
            del self._known[copy]


def _copies(columns: Columns) -> Iterator[tuple[_Copy, Divided]]:
    named = (*(values_of(columns, name) for name in ("project_id", "ts", "retention_days")), columns["shared_texts"])
    for project_id, ts, days, parts in zip(*named, strict=True):
        if parts:
            expires = _EPOCH + timedelta(days=ts // _DAY + min(days, TEXTS_KEPT_DAYS))
            for text_id in parts.ids:
                yield _Copy(project_id, text_id, expires), parts


def _texts(copies: Mapping[_Copy, Divided]) -> Mapping[UUID, SharedText]:
    found: dict[UUID, SharedText] = {}
    for copy, parts in copies.items():
        if copy.text_id not in found:
            found.update((text.id, text) for text in parts.latest)
        if copy.text_id not in found:
            found.update((text.id, text) for text in parts.texts())
    return found
