from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.utils import timezone
from prometheus_client.core import Metric

from analytics.clickhouse import client
from analytics.online_evaluations.selectors import backlog
from analytics.shipper.spool_status import read_status
from analytics.spool.handover import FOLDER, read_lost
from analytics.trace_export.outbox import read_states
from core.processes.monitoring import IN_DATABASE, ON_DISK, Alarm, Found, Subject, counter, gauge

# A loss of records raises the alarm for this long.
_LOSS_SECONDS = 600.0
_MAX_EVALUATIONS = 100
_EVALUATION = ("project", "evaluation")


def ping_store() -> None:
    client.execute("SELECT 1")


def _spool() -> dict[str, Any]:
    return asdict(read_status(settings.SPOOL_DIR))


def _metrics(found: Found) -> Iterable[Metric]:
    losses = found["losses"]
    for name, text, value in (
        ("spool_bytes", "Bytes of records on this host's disk.", found["segment_bytes"]),
        ("spool_unshipped_bytes", "Those that the request log does not have yet.", found["unshipped_bytes"]),
        (
            "spool_lag_seconds",
            "How long ago the oldest of their requests ended.",
            found["oldest_unshipped_seconds"],
        ),
        ("dead_letters", "Records and damaged ranges kept for a person to look at.", found["dead_letters"]),
        ("queued_records", "Records that wait in memory for room on the disk.", losses["queued"]),
    ):
        yield gauge(name, text, (), [((), value)])
    yield counter("lost_records", "Records that could be kept nowhere.", (), [((), losses["lost"])])
    yield counter(
        "records_without_content",
        "Records that were kept without their texts for lack of room.",
        (),
        [((), losses["without_content"])],
    )


def _alarms(found: Found) -> Iterable[Alarm]:
    losses, lag = found["losses"], found["oldest_unshipped_seconds"]
    if losses["last_loss"] and time.time() - losses["last_loss"] / 1_000_000 < _LOSS_SECONDS:
        yield Alarm("records_lost", f"{losses['lost']} records of requests were lost since the spool was made.")
    if lag > settings.SHIPPING_BEHIND_SECONDS:
        yield Alarm("shipping_behind", f"Records have waited for {lag:.0f} seconds to reach the request log.")
    if found["dead_letters"]:
        text = f"{found['dead_letters']} records lie in the spool's folder `dead`: see `manage.py dead_letters list`."
        yield Alarm("dead_letters", text)


def _export() -> dict[str, Any]:
    states, lost = read_states(settings.SPOOL_DIR / FOLDER), read_lost(settings.SPOOL_DIR)
    return {
        "waiting_spans": sum(state.waiting_spans for state in states),
        "waiting_bytes": sum(state.waiting_bytes for state in states),
        "oldest": min((state.oldest for state in states if state.oldest), default=0.0),
        "sent": sum(state.counts.sent for state in states),
        "dropped": sum(state.counts.dropped for state in states),
        "rejected": sum(state.counts.rejected for state in states),
        "lost_records": lost.records,
        "last_loss": lost.last,
    }


def _export_metrics(found: Found) -> Iterable[Metric]:
    lag = max(time.time() - found["oldest"], 0.0) if found["oldest"] else 0.0
    for name, text, value in (
        ("trace_export_waiting_spans", "Spans that wait for collectors on this host.", found["waiting_spans"]),
        ("trace_export_waiting_bytes", "Bytes of their batches.", found["waiting_bytes"]),
        ("trace_export_lag_seconds", "How long the oldest of them has waited.", lag),
    ):
        yield gauge(name, text, (), [((), value)])
    for name, text, value in (
        ("trace_export_sent_spans", "Spans that collectors have taken.", found["sent"]),
        ("trace_export_dropped_spans", "Spans that were given up on: refused, too old, or too many.", found["dropped"]),
        ("trace_export_rejected_spans", "Spans refused in batches that were taken otherwise.", found["rejected"]),
        ("trace_export_lost_records", "Records that could not be handed over to the exporter.", found["lost_records"]),
    ):
        yield counter(name, text, (), [((), value)])


def _export_alarms(found: Found) -> Iterable[Alarm]:
    if found["last_loss"] and time.time() - found["last_loss"] < _LOSS_SECONDS:
        text = f"{found['lost_records']} records could not be handed over to the exporter: is it running?"
        yield Alarm("trace_export_behind", text)


def _evaluations() -> dict[str, Any]:
    now = timezone.now()
    return {
        "backlog": [
            [str(project), str(evaluation), due, max((now - oldest).total_seconds(), 0.0)]
            for project, evaluation, due, oldest in backlog(_MAX_EVALUATIONS)
        ]
    }


def _evaluation_metrics(found: Found) -> Iterable[Metric]:
    rows = found["backlog"]
    yield gauge(
        "evaluation_tasks_due",
        "Answers that an online evaluation has due and that are not judged yet; without those that wait for users.",
        _EVALUATION,
        [((project, evaluation), due) for project, evaluation, due, _ in rows],
    )
    yield gauge(
        "evaluation_oldest_due_seconds",
        "How long ago the oldest of them came due.",
        _EVALUATION,
        [((project, evaluation), seconds) for project, evaluation, _, seconds in rows],
    )


EVALUATIONS = Subject("evaluations", _evaluations, 20.0, _evaluation_metrics, looks=IN_DATABASE)
TRACE_EXPORT = Subject("trace_export", _export, 5.0, _export_metrics, _export_alarms, ON_DISK)
SPOOL = Subject("spool", _spool, 5.0, _metrics, _alarms, ON_DISK)
