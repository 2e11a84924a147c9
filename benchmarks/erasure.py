"""`python -m benchmarks.erasure` exports and deletes parts of a history of millions of requests. See
benchmarks/README.md."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from benchmarks import report as machine_report
from benchmarks.analytics_store import Store, merge_as_time_would, store, wait_for_merges
from benchmarks.django_setup import positive_number, set_up_django

if TYPE_CHECKING:
    from benchmarks.analytics_questions import Sample

_SESSIONS = 3
_REQUESTS = 3


@dataclass(frozen=True, slots=True)
class Work:
    name: str
    requests: int
    size: int
    seconds: float
    engine_cpu: float | None


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    # A SIGTERM to the benchmark also ends its engine.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with store(options.data) as measured:
        set_up_django(measured)
        works = _measure(options, measured)
    print(table(works), "", machine_report.machine(), sep="\n")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.erasure", description=__doc__)
    parser.add_argument("--requests", type=positive_number, default=10_000_000, help="how many to generate")
    parser.add_argument("--days", type=positive_number, default=90)
    parser.add_argument("--content-days", type=int, default=30, help="how many of the newest days have texts")
    parser.add_argument("--data", type=Path, help="keep the store here, without what is deleted")
    return parser.parse_args(arguments)


def table(works: Sequence[Work]) -> str:
    lines = ["| What | requests | MB | s | requests/s | engine CPU s |", "|---|---|---|---|---|---|"]
    for work in works:
        size = f"{work.size / 1e6:,.1f}" if work.size else "-"
        cpu = "-" if work.engine_cpu is None else f"{work.engine_cpu:.2f}"
        rate = f"{work.requests / work.seconds:,.0f}"
        lines.append(f"| {work.name} | {work.requests:,} | {size} | {work.seconds:.2f} | {rate} | {cpu} |")
    return "\n".join(lines)


def _measure(options: argparse.Namespace, measured: Store) -> list[Work]:
    from benchmarks.analytics_questions import take_sample
    from benchmarks.analytics_traffic import HistorySize, project_with_traffic

    size = HistorySize(options.requests, options.days, min(options.content_days, options.days))
    traffic = project_with_traffic(size, measured)
    wait_for_merges()
    merge_as_time_would()
    sample = take_sample(traffic.project, traffic.end, options.days)
    # A request or session that is drawn twice is deleted once.
    requests = list(dict.fromkeys(sample.request_ids))[:_REQUESTS]
    sessions = [one for one in dict.fromkeys(sample.session_ids) if one != sample.marathon][:_SESSIONS]
    return [
        _timed(measured, "export of a day", lambda: _export(sample, timedelta(days=1), content=False)),
        _timed(measured, "export of an hour with bodies", lambda: _export(sample, timedelta(hours=1), content=True)),
        _timed(measured, f"deletion of {len(requests)} requests", lambda: _delete_requests(sample, requests)),
        _timed(measured, f"deletion of {len(sessions)} sessions", lambda: _delete_sessions(sample, sessions)),
        _timed(measured, "deletion of the longest session", lambda: _delete_sessions(sample, [sample.marathon])),
        _timed(measured, "expiry: the oldest month rewritten", _rewrite_the_oldest_month),
    ]


def _timed(measured: Store, name: str, work: Callable[[], tuple[int, int]]) -> Work:
    cpu, started = measured.cpu_seconds(), time.perf_counter()
    requests, size = work()
    seconds = time.perf_counter() - started
    wait_for_merges()
    return Work(name, requests, size, seconds, measured.cpu_seconds() - cpu if measured.engine else None)


def _export(sample: Sample, length: timedelta, *, content: bool) -> tuple[int, int]:
    from analytics.exports.lines import export_lines
    from analytics.queries.request_filters import RequestFilter

    filters = RequestFilter(start=sample.end - length, end=sample.end)
    requests = size = 0
    for piece in export_lines(sample.project, filters, content=content):
        requests += piece.count(b"\n")
        size += len(piece)
    return requests, size


def _delete_requests(sample: Sample, ids: Sequence[str]) -> tuple[int, int]:
    from analytics.deletion.services import delete_request

    for request_id in ids:
        delete_request(sample.project, UUID(request_id), actor="benchmark")
    return len(ids), 0


def _delete_sessions(sample: Sample, ids: Sequence[str]) -> tuple[int, int]:
    from analytics.deletion.services import delete_session, finish_due

    for session_id in ids:
        delete_session(sample.project, session_id, actor="benchmark")
    return finish_due(), 0


def _rewrite_the_oldest_month() -> tuple[int, int]:
    from analytics.clickhouse import client

    [(partition, rows)] = client.execute(
        "SELECT partition_id, sum(rows) FROM system.parts WHERE active AND database = currentDatabase()"
        " AND table = 'requests' GROUP BY partition_id ORDER BY partition_id LIMIT 1"
    )
    client.execute(f"OPTIMIZE TABLE requests PARTITION ID '{partition}' FINAL", settings={"max_execution_time": 0})
    return int(rows), 0


if __name__ == "__main__":
    sys.exit(main())
