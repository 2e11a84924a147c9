from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from analytics.clickhouse import client
from analytics.traffic.generate import Plan, generate
from analytics.traffic.texts import OWN_TEXTS, read_texts

END = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=3)
REQUESTS = 400


@pytest.fixture
def plan(clickhouse: None) -> Plan:
    return Plan(uuid4(), REQUESTS, END, days=5, text_days=5, seed=5, api_keys=(11, 12))


def _generate(plan: Plan) -> None:
    written: list[int] = []
    generate(plan, read_texts(OWN_TEXTS), written=written.append)
    assert sum(written) == plan.requests


def _rows(sql: str, project: UUID) -> Sequence[tuple[Any, ...]]:
    return client.execute(sql, {"project": project})


def _digest(project: UUID) -> tuple[Any, ...]:
    """Returns a digest of every column but those that identify the project and the request or say when it was
    written."""
    sql = """
        SELECT count(), sum(cityHash64(* EXCEPT (project_id, request_id, recorded_at))), (
            SELECT sum(cityHash64(ts, prompt, completion, request)) FROM payloads WHERE project_id = {project:UUID}
        ) FROM requests WHERE project_id = {project:UUID}
    """
    return _rows(sql, project)[0]


def test_the_same_plan_writes_its_rows_once(plan: Plan) -> None:
    _generate(plan)
    once = _digest(plan.project)
    assert once[0] == REQUESTS
    _generate(plan)
    assert _digest(plan.project) == once


def test_rows_depend_on_the_plan_alone(plan: Plan) -> None:
    again, other = replace(plan, project=uuid4()), replace(plan, project=uuid4(), seed=6)
    for one in (plan, again, other):
        _generate(one)
    assert _digest(again.project) == _digest(plan.project)
    assert _digest(other.project)[1] != _digest(plan.project)[1]
    ids = "SELECT uniqExact(request_id) FROM requests WHERE project_id IN ({project:UUID}, {other:UUID})"
    assert client.execute(ids, {"project": plan.project, "other": again.project}) == [(2 * REQUESTS,)]


def test_nothing_is_left_behind(plan: Plan) -> None:
    _generate(replace(plan, requests=10))
    assert client.execute("SELECT name FROM system.tables WHERE name LIKE 'traffic%'") == []


@pytest.mark.parametrize("requests", [1, 2, 9, 11])
def test_small_numbers_are_exact(plan: Plan, requests: int) -> None:
    _generate(replace(plan, requests=requests, text_days=0))
    assert _digest(plan.project)[0] == requests
    assert _rows("SELECT count() FROM payloads WHERE project_id = {project:UUID}", plan.project) == [(0,)]
