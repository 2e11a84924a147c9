"""Helpers of the tests of reconciliation: stored requests, damaged rollups, and readings of both."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.clickhouse.rollups import Column, Rollup, list_rollups
from analytics.reconciliation.services import Difference, reconcile
from analytics.reconciliation.units import Unit
from analytics.request_log.record import AttemptRecord, Outcome
from tests.factories.analytics import make_entry

MODELS = ["gpt-4o", "claude-sonnet-4", 'Ünïcode\'s "model"']

_ATTEMPTS = (
    AttemptRecord(provider="groq", model="m", status=503, error="unavailable"),
    AttemptRecord(provider="openai", model="m", status=200),
)
_VERDICT = {"guardrail": "pii", "stage": "input", "action": "flag"}


def entries_of(project: UUID, number: int, *, spread_days: int) -> Iterator[Any]:
    """Returns entries of the days before yesterday, at any time of day, with a value in each counted field."""
    chance = random.Random(7)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for index in range(number):
        day = midnight - timedelta(days=2 + index % spread_days)
        outcome = chance.choice(list(Outcome))
        yield make_entry(
            b'{"messages": []}',
            b"{}",
            project_id=str(project),
            ts=int((day + timedelta(seconds=chance.randrange(86_400))).timestamp() * 1e6),
            outcome=outcome,
            status_code=200 if outcome is Outcome.SUCCESS else 500,
            error_type="" if outcome is Outcome.SUCCESS else chance.choice(["api_error", "rate_limit_error"]),
            session_id=chance.choice(["", "s1", "s2", "日本's"]),
            user_id=chance.choice(["", "u1", "u\\2"]),
            model=chance.choice(MODELS),
            cost_known=chance.random() < 0.9,
            cost_usd=f"{chance.randrange(100)}.{chance.randrange(10**10):010d}",
            latency_ms=chance.randrange(60_000),
            ttft_ms=chance.choice([0, chance.randrange(1, 5_000)]),
            cache_read_tokens=chance.randrange(50),
            contract_violation=chance.random() < 0.1,
            attributes={"guardrails": json.dumps([_VERDICT])} if chance.random() < 0.3 else {},
            **({"attempts": _ATTEMPTS, "fallback_used": True} if chance.random() < 0.3 else {}),
        )


def raw_rows(project: UUID) -> list[Any]:
    """Returns the ids of the rows with and without content."""
    return [
        client.execute(
            f"SELECT request_id FROM {table} WHERE project_id = {{project:UUID}} ORDER BY request_id",  # noqa: S608
            {"project": project},
        )
        for table in ("requests", "payloads")
    ]


def differences_of(project: UUID) -> list[Difference]:
    """Returns the requests that are stored twice and the differences of every rollup from its requests, as if all days
    were over."""
    the_day_after_tomorrow = datetime.now(UTC) + timedelta(days=2)
    return list(reconcile([project], now=the_day_after_tomorrow, dry_run=True).differences)


def rollup_of(table: str) -> Rollup:
    return next(rollup for rollup in list_rollups() if rollup.table == table)


def damage_unit(rollup: Rollup, project: UUID, how: str, unit: Unit, execute: Any = client.execute) -> bool:
    """Damages a unit of a rollup. Returns False when the damage would change no figure."""
    where = "project_id = {project:UUID} AND drop_date = {day:Date}"
    values = {"project": project, "day": unit.day.isoformat()}
    columns = ", ".join(column.name for column in rollup.columns)
    rows = f"FROM {rollup.table} WHERE {where}"
    options = {"insert_deduplicate": 0}
    if how == "DELETE":
        execute(f"DELETE {rows}", values)
    elif how == "DOUBLE":
        execute(f"INSERT INTO {rollup.table} ({columns}) SELECT {columns} {rows}", values, settings=options)
        return any("sum" in column.type for column in rollup.columns)
    else:
        name = next(item.name for item in rollup.columns if item.name in rollup.key and "String" in item.type)
        other = f"SELECT * REPLACE ('x' AS {name}) FROM (SELECT {columns} {rows})"  # noqa: S608 - names of the schema
        execute(f"INSERT INTO {rollup.table} ({columns}) {other}", values, settings=options)
        execute(f"DELETE {rows} AND {name} != 'x'", values)
    return True


def content_of(rollup: Rollup, project: UUID) -> list[tuple[Any, ...]]:
    """Returns all rows, merged by key, as a reader gets them."""
    columns = [_shown(column) for column in rollup.columns]
    sql = f"SELECT {', '.join(columns)} FROM {rollup.table} FINAL WHERE project_id = {{project:UUID}} ORDER BY ALL"  # noqa: S608
    return client.execute(sql, {"project": project})


def _shown(column: Column) -> str:
    if column.type.startswith("Aggregate"):
        return f"toString(finalizeAggregation({column.name}))"
    return f"toString(arraySort({column.name}))" if "Array" in column.type else f"toString({column.name})"


def _microseconds(unit: Unit, hour: int) -> int:
    moment = datetime(unit.first.year, unit.first.month, unit.first.day, hour, tzinfo=UTC)
    return int(moment.timestamp() * 1e6)
