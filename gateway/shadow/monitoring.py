from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client.core import Metric

from core.processes.monitoring import IN_DATABASE, Found, Subject, gauge
from gateway.models import Shadow
from gateway.tables.experiment import UNFINISHED

_MAX_SHADOWS = 100
_LABELS = ("project", "rollout")
_TAKEN = "taken"


def _running() -> dict[str, Any]:
    rows = Shadow.objects.filter(experiment__state__in=UNFINISHED).select_related("experiment")
    return {"shadows": [_values(row) for row in rows.order_by("-followed_until")[:_MAX_SHADOWS]]}


def _values(row: Shadow) -> dict[str, Any]:
    experiment = row.experiment
    return {
        "project": str(experiment.project_id),
        "rollout": str(experiment.rollout_id),
        "requests": {_TAKEN: row.taken, **row.skipped},
        "spent_usd": float(experiment.spent_usd),
    }


def _metrics(found: Found) -> Iterable[Metric]:
    rows = found["shadows"]
    yield gauge(
        "shadow_requests",
        "Requests that the shadow of a rollout sampled: taken, or why it left them out.",
        [*_LABELS, "result"],
        [((row["project"], row["rollout"], result), n) for row in rows for result, n in row["requests"].items()],
    )
    yield gauge(
        "shadow_spent_usd",
        "What the shadow of a rollout has spent, in US dollars.",
        _LABELS,
        [((row["project"], row["rollout"]), row["spent_usd"]) for row in rows],
    )


SHADOWS = Subject("shadows", _running, 20.0, _metrics, looks=IN_DATABASE)
