"""Makes requests anonymous in batches, each exactly once even if a process is killed on the way.

A batch's content is stored before its first step. Its rows enter `anonymised` with the batch's id as the insert token,
so a retry counts them once; only then the originals are deleted. A retry skips finished steps: it does not read deleted
rows again, and leaves correct figures alone.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any
from uuid import UUID

import msgspec
from django.db import transaction
from django.utils import timezone

from analytics.clickhouse import client
from analytics.clickhouse.late_figures import settle
from analytics.clickhouse.rollups import list_rollups
from analytics.deletion.references import QUOTING, add_references, next_references, note_searched, parameters_of
from analytics.deletion.subject import Subject, spans_of
from analytics.deletion.texts import delete_texts
from analytics.errors import RepairBusyError
from analytics.models import Deletion, DeletionBatch
from analytics.reconciliation.comparison import LIMITS
from analytics.reconciliation.rebuilding import rebuild_persons
from analytics.reconciliation.units import Unit
from analytics.request_log.columns import ANONYMISED

logger = logging.getLogger("analytics.deletion")

_REQUESTS_AT_ONCE = 10_000


class Plan(msgspec.Struct, frozen=True):
    """The requests of a batch, their time range, and the keys of the figures that name them."""

    ids: tuple[UUID, ...]
    first: datetime
    last: datetime
    drop_dates: tuple[date, ...]
    sessions: tuple[str, ...]
    users: tuple[str, ...]

    @property
    def scope(self) -> dict[str, Any]:
        return {"ids": [str(one) for one in self.ids], "first": self.first, "last": self.last}

    @property
    def units(self) -> list[Unit]:
        first, last = self.first.date(), self.last.date()
        return [Unit(day, first, last, len(self.ids)) for day in self.drop_dates]


_FOUND = "SELECT request_id, ts, drop_date, session_id, user_id FROM requests WHERE {where} LIMIT {limit}"
_IN_BATCH = """project_id = {project:UUID} AND request_id IN {ids:Array(UUID)}
    AND ts >= {first:DateTime64(6, 'UTC')} AND ts <= {last:DateTime64(6, 'UTC')}"""


def plan_batch(deletion: Deletion, subject: Subject) -> DeletionBatch | None:
    return _plan(deletion, subject.requests, subject.parameters) if subject.requests else None


def plan_quotes(deletion: Deletion, started: datetime) -> DeletionBatch | None:
    """Plans a batch of requests that quote what was erased; None once every reference was searched since `started`."""
    while references := next_references(deletion, started):
        searched_at = timezone.now()
        batch = _plan(deletion, QUOTING, parameters_of(deletion, references))
        if batch is not None:
            return batch
        note_searched(references, searched_at)
    return None


def _plan(deletion: Deletion, where: str, parameters: Mapping[str, Any]) -> DeletionBatch | None:
    sql = _FOUND.format(where=where, limit=_REQUESTS_AT_ONCE)
    found = client.execute(sql, parameters, settings=LIMITS, fresh=("requests",))
    if not found:
        return None
    plan = Plan(
        ids=tuple(row[0] for row in found),
        first=min(row[1] for row in found),
        last=max(row[1] for row in found),
        drop_dates=tuple(sorted({row[2] for row in found})),
        sessions=tuple(sorted({row[3] for row in found if row[3]})),
        users=tuple(sorted({row[4] for row in found if row[4]})),
    )
    with transaction.atomic():
        # Who quotes them is found by these ids, also after their rows have lost them.
        add_references(deletion, plan.ids, plan.first)
        return DeletionBatch.objects.create(deletion=deletion, plan=msgspec.to_builtins(plan))


def finish_batch(batch: DeletionBatch, project_id: UUID, *, is_first_try: bool = False) -> int:
    """Runs the remaining steps and returns the number of requests in the batch.

    The first try repairs figures without comparing them: they still name requests that have just been deleted. The
    errors of the store, and RepairBusyError when figures keep changing, leave the batch for a retry.
    """
    plan = msgspec.convert(batch.plan, Plan)
    # The requests lose their rows, from which their late figures are made.
    settle()
    scope = {**plan.scope, "project": project_id}
    if _count("payloads", _IN_BATCH, scope):
        delete_texts(project_id, _IN_BATCH, scope, token=f"texts-{batch.pk}")
    delete_where("otel_traces", *spans_of(project_id, plan.ids, plan.first, plan.last))
    sql = f"SELECT {', '.join(ANONYMISED)}, user_id != '' FROM requests WHERE {_IN_BATCH} ORDER BY request_id"
    rows = client.execute(sql, scope, settings=LIMITS, fresh=("requests",))
    client.insert("anonymised", (*ANONYMISED, "had_user"), _anonymous(rows), token=f"anonymised-{batch.pk}")
    delete_where("requests", _IN_BATCH, scope)
    _repair_figures(project_id, plan, known_to_differ=is_first_try)
    batch.delete()
    return len(plan.ids)


def delete_where(table: str, where: str, parameters: dict[str, Any]) -> int:
    count = _count(table, where, parameters)
    if count:
        client.execute(f"DELETE FROM {table} WHERE {where}", parameters, settings=LIMITS)
    return count


def _count(table: str, where: str, parameters: dict[str, Any]) -> int:
    ((count,),) = client.execute(f"SELECT count() FROM {table} WHERE {where}", parameters, LIMITS, fresh=(table,))
    return int(count)


def _repair_figures(project_id: UUID, plan: Plan, *, known_to_differ: bool) -> None:
    if not (plan.sessions or plan.users):
        return
    for rollup in list_rollups():
        if not rollup.names_persons:
            continue
        if not rebuild_persons(
            rollup,
            project_id,
            plan.units,
            sessions=plan.sessions,
            users=plan.users,
            known_to_differ=known_to_differ,
        ):
            raise RepairBusyError("The figures are changing too fast. The rest is done in the background.")


def _anonymous(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Gives new ids with the same times, and new unit numbers that stay equal where they were equal."""
    request_id, ts, unit = (ANONYMISED.index(name) for name in ("request_id", "ts", "alloc_unit"))
    salt = secrets.token_bytes(32)
    made = []
    for row in rows:
        values = list(row)
        values[request_id] = _new_id(values[ts])
        values[unit] = _unlinked(values[unit], salt)
        made.append(tuple(values))
    return made


def _new_id(ts: datetime) -> UUID:
    milliseconds = int(ts.timestamp() * 1000)
    return UUID(int=milliseconds << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62))


def _unlinked(unit: int, salt: bytes) -> int:
    """Returns another number for an allocation unit. 0 stays: the request was not allocated."""
    if not unit:
        return 0
    return int.from_bytes(hashlib.blake2b(unit.to_bytes(8, "big"), key=salt, digest_size=8).digest(), "big") or 1
