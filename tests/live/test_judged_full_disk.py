"""An experiment, an online evaluation and clients on a full disk: each call that a provider answered has its row.

FULL_DISK_SECONDS is how long it is full, 30 by default. The figures are logged by `--log-cli-level=INFO`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests

from analytics.spool.counters import read_losses
from tests.fakes.scripted import Script, ScriptedServer, answer
from tests.fakes.upstream import Connection, Received
from tests.journeys.rows import Rows, read_rows
from tests.live.prompts import JSON, Project
from tests.live.service import LiveService
from tests.migrated import place_database, place_tables
from tests.services import START_SECONDS
from tests.small_disk import SmallDisk, small_disk
from tests.waiting import wait_until

logger = logging.getLogger("tests.live")

_FULL_SECONDS = float(os.environ.get("FULL_DISK_SECONDS", "30"))
_DISK_BYTES = 260 << 20
_ITEMS, _RATE, _CLIENTS = 150, 10.0, 4
_ONLINE, _TRIED = "judge-online", "judge-tried"
_PRICE = {"input_cost_per_1m": "1", "output_cost_per_1m": "2"}
_GRADE = json.dumps({"kindness": {"reason": "It is kind.", "label": "good"}})


@dataclass
class Clients:
    project: Project
    statuses: Counter[int] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        url, key = f"{self.project.service.base_url}/api/gateway/v1/chat/completions", self.project.api_key
        body = {"model": "openai/answers", "messages": [{"role": "user", "content": "x" * 1000}]}
        with requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {key}"
            while not self.stop.wait(_CLIENTS / _RATE):
                try:
                    self.statuses[session.post(url, json=body, timeout=START_SECONDS).status_code] += 1
                except requests.RequestException:
                    self.statuses[0] += 1


@dataclass
class Asked:
    project: Project
    script: Script
    experiment_id: str = ""
    online_id: str = ""

    def calls(self, model: str = "") -> int:
        models = [_model(one) for one in list(self.script.received) if one.method == "POST"]
        return models.count(model) if model else len(models)

    def evaluator(self, model: str) -> str:
        self.project.call("PUT", f"../pricing/openai/{model}", _PRICE)
        labels = [{"name": name, "meaning": name, "score": score} for name, score in (("good", 1.0), ("bad", 0.0))]
        criteria = [{"name": "kindness", "meaning": "It is kind.", "labels": labels}]
        definition = {"model": f"openai/{model}", "criteria": criteria, "max_tokens": 500}
        made = self.project.call("POST", "../evaluators", {"name": model, "kind": "judge", "definition": definition})
        return str(made["id"])

    def try_out(self) -> None:
        dataset = self.project.call("POST", "../datasets", {"name": "tried"})["id"]
        items = [{"messages": [{"role": "user", "content": f"Question {number}"}]} for number in range(_ITEMS)]
        self.project.call("POST", f"../datasets/{dataset}/items", {"items": items})
        body = {
            "dataset_id": dataset,
            "candidates": [{"model": "openai/one"}, {"model": "openai/other"}],
            "evaluators": [{"evaluator_id": self.evaluator(_TRIED)}],
        }
        self.experiment_id = self.project.call("POST", "../experiments", body)["id"]

    def experiment(self) -> JSON:
        return self.project.call("GET", f"../experiments/{self.experiment_id}")

    def settled(self) -> Rows | None:
        if self.experiment()["state"] in ("pending", "running"):
            return None
        # Calls are counted after the rows, so that a call that is under way is no reason for either result.
        rows = read_rows(self.project.service, self.project.project_id)
        return rows if rows is not None and rows.total >= self.calls() else None


def _model(request: Received) -> str:
    return str(json.loads(request.body)["model"])


async def _answers(request: Received, connection: Connection) -> None:
    if request.method == "GET":
        await connection.send_whole(200, b'{"data": []}', {"content-type": "application/json"})  # Its models.
        return
    await asyncio.sleep(0.1)
    await answer(_GRADE if _model(request) in (_ONLINE, _TRIED) else "Kindly.")(request, connection)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "var", _DISK_BYTES) as found:
        place_database(found.path)
        place_tables(found.path / "clickhouse")
        yield found


@pytest.fixture
def asked(disk: SmallDisk) -> Iterator[Asked]:
    with ScriptedServer() as upstream:
        environment = {"SPOOL_RESERVE_BYTES": str(4 << 20), "ALLOW_PRIVATE_UPSTREAMS": "1"}
        service = LiveService(disk.path, environment)
        try:
            project = Project(service, service.project_id, service.api_key)
            row = {"provider": "openai", "api_key": "sk-scripted", "base_url": upstream.base_url("models")}
            project.call("POST", "../integrations", row)
            project.set(retry_enabled=False)
            made = Asked(project, upstream.play("models", _answers))
            online = {"evaluator_id": made.evaluator(_ONLINE), "rate": 1, "monthly_budget_usd": 100}
            made.online_id = project.call("POST", "../online-evaluations", online)["id"]
            yield made
            assert service.stop() == 0
        finally:
            service.process.kill()
            service.process.wait()


@pytest.mark.night
def test_disk__full_while_models_are_asked_for_clients_and_judges__each_call_has_its_row(
    asked: Asked, disk: SmallDisk
) -> None:
    clients = Clients(asked.project)
    with ThreadPoolExecutor(_CLIENTS) as pool:
        for _ in range(_CLIENTS):
            pool.submit(clients.run)
        try:
            # A minute of the log is sampled when it is complete.
            wait_until(lambda: asked.calls(_ONLINE) >= 20, seconds=4 * START_SECONDS, what="the online judge")
            asked.try_out()
            wait_until(lambda: asked.calls(_TRIED) >= 20, seconds=START_SECONDS, what="the experiment's judge")
            began = {model: asked.calls(model) for model in (_ONLINE, _TRIED, "answers")}
            for _ in range(10):  # Other processes free space meanwhile.
                disk.fill()
                clients.stop.wait(_FULL_SECONDS / 10)
            full = {model: asked.calls(model) - calls for model, calls in began.items()}
            disk.free()
            # A row comes later than its call: only of calls that have an end each has one.
            clients.stop.set()
            asked.project.call("PATCH", f"../online-evaluations/{asked.online_id}", {"state": "paused"})
            rows = wait_until(asked.settled, seconds=2 * START_SECONDS, what="a row for each call")
        finally:
            clients.stop.set()
            found = read_rows(asked.project.service, asked.project.project_id)
            logger.info("disk.settling calls=%d rows=%s", asked.calls(), found and found.total)

    losses, experiment = read_losses(disk.path / "spool"), asked.experiment()
    logger.info(
        "disk.was_full seconds=%.0f while_full=%s statuses=%s calls=%d rows=%d lost=%d experiment=%s",
        _FULL_SECONDS, full, dict(clients.statuses), asked.calls(), rows.total, losses.lost, experiment["state"],
    )  # fmt: skip
    assert losses.lost == 0
    assert len(rows.outcomes) == rows.total
    assert set(clients.statuses) == {200}
    assert full["answers"] > 0
