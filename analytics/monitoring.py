"""The figures and alarms of the spool and of the store of the request log, for monitoring."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.conf import settings
from prometheus_client.core import Metric

from analytics.clickhouse import client
from analytics.shipper.spool_status import read_status
from core.processes.monitoring import Alarm, Found, Subject, counter, gauge

# A loss of records raises the alarm for this long.
_LOSS_SECONDS = 600.0


def ping_store() -> None:
    """Checks that the store answers. Raises AnalyticsUnavailableError when it does not."""
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
        yield Alarm("dead_letters", f"{found['dead_letters']} records lie in the spool's folder `dead`.")


SPOOL = Subject("spool", _spool, 2.0, _metrics, _alarms)
