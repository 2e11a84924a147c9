from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from django.core.management import call_command
from rest_framework.test import APIClient
from tqdm import tqdm

from analytics.traffic.generate import Plan, generate
from analytics.traffic.texts import OWN_TEXTS, read_texts
from benchmarks.analytics_questions import Call
from benchmarks.analytics_store import Store
from core.keys.services import issue_key
from core.models import Project
from core.rights.scopes import SCOPES

_STATE = "generated.json"


@dataclass(frozen=True, slots=True)
class HistorySize:
    requests: int
    days: int
    content_days: int


@dataclass(frozen=True, slots=True)
class Traffic:
    project: UUID
    key: str
    end: datetime
    seconds: float
    cpu_seconds: float | None


class ManagementApi:
    def __init__(self, project: UUID, key: str) -> None:
        self._client: Any = APIClient(SERVER_NAME="localhost", raise_request_exception=False)
        self._client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}", HTTP_X_PROJECT_ID=str(project))

    def send(self, call: Call) -> int:
        if call.body is None:
            return int(self._client.get(call.path).status_code)
        return int(self._client.post(call.path, call.body, format="json").status_code)


def project_with_traffic(size: HistorySize, measured: Store) -> Traffic:
    call_command("migrate", verbosity=0)
    call_command("migrate_analytics", verbosity=0)
    state = measured.folder / _STATE
    known = json.loads(state.read_text()) if state.exists() else {}
    if known.get("size") != asdict(size):
        known = {"size": asdict(size), **_generate(size, measured)}
        state.write_text(json.dumps(known))
    project, _ = Project.objects.get_or_create(pk=UUID(known["project"]), defaults={"name": known["project"]})
    _, key = issue_key(project, name="benchmark", scopes=SCOPES)
    return Traffic(project.pk, key, datetime.fromisoformat(known["end"]), known["seconds"], known["cpu_seconds"])


def _generate(size: HistorySize, measured: Store) -> dict[str, Any]:
    end = datetime.now(UTC).replace(second=0, microsecond=0)
    plan = Plan(uuid4(), size.requests, end, size.days, size.content_days, seed=1)
    started, cpu = time.perf_counter(), measured.cpu_seconds()
    with tqdm(total=size.requests, desc="generating", unit="request", unit_scale=True, disable=None) as bar:
        generate(plan, read_texts(OWN_TEXTS), written=bar.update)
    return {
        "project": str(plan.project),
        "end": end.isoformat(),
        "seconds": time.perf_counter() - started,
        "cpu_seconds": measured.cpu_seconds() - cpu if measured.engine is not None else None,
    }
