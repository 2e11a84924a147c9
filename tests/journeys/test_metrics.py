"""The counters of `/metrics` equal the request log, whatever was killed in between."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from clickhouse_driver import Client

from tests.journeys.rows import rows_when
from tests.journeys.test_kills import kill_during_traffic, rows_with
from tests.journeys.traffic import Project, Traffic, new_project
from tests.live.service import LiveService
from tests.services import START_SECONDS
from tests.waiting import wait_until

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

Figures = dict[tuple[str, ...], Any]


def test_counters__after_kills_of_worker_shipper_and_engine__equal_the_request_log(
    journey_service: LiveService,
) -> None:
    project = new_project(journey_service, "metrics")
    traffic = Traffic(journey_service, project, "metrics")

    kill_during_traffic(journey_service, traffic, ("shipper", "web-1", "shipper", "engine"), answers=15, kills=4)
    rows_with(journey_service, traffic)

    # Requests that died with their worker are recorded later, so both sides have to come to rest.
    def equal() -> bool:
        rows_when(journey_service, project.id, lambda rows: rows.consistent)
        return counted(journey_service, project) == logged(journey_service, project)

    try:
        wait_until(equal, seconds=START_SECONDS, what="the counters to equal the log")
    except AssertionError:
        assert counted(journey_service, project) == logged(journey_service, project)
    assert sum(counted(journey_service, project)["requests", "success"].values()) >= len(traffic.succeeded)


def counted(service: LiveService, project: Project) -> dict[tuple[str, str], Counter[str]]:
    found: dict[tuple[str, str], Counter[str]] = {}
    for (name, labels), value in service.metrics().items():
        of = dict(labels)
        if of.get("project") != project.id or not name.endswith("_total"):
            continue
        subject = name.removeprefix("prompt_gateway_").removesuffix("_total")
        if subject in ("requests", "tokens", "cost_usd"):
            kind = of.get("outcome") or of.get("type") or "cost"
            found.setdefault((subject, kind), Counter())[of["model"]] += round(Decimal(value), 8)  # type: ignore[assignment]
    return found


def logged(service: LiveService, project: Project) -> dict[tuple[str, str], Counter[str]]:
    address = (service.var_dir / "run" / "clickhouse.url").read_text().strip()
    found: dict[tuple[str, str], Counter[str]] = {}
    with Client.from_url(address) as client:
        rows = client.execute(
            "SELECT toString(model), toString(outcome), count(), sum(prompt_tokens), sum(completion_tokens),"
            " sum(cost_usd) FROM llm.requests WHERE project_id = %(project)s GROUP BY model, outcome",
            {"project": project.id},
        )
    for model, outcome, requests, prompt, completion, cost in rows:
        for key, value in (
            (("requests", outcome), requests),
            (("tokens", "prompt"), prompt),
            (("tokens", "completion"), completion),
            (("cost_usd", "cost"), round(cost, 8)),
        ):
            if value:
                found.setdefault(key, Counter())[model] += value
    return found
