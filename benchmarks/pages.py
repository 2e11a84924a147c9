"""`python -m benchmarks.pages` opens every operators' page over millions of requests. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import asyncio
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks import report as machine_report
from benchmarks.analytics_report import QueryTimes
from benchmarks.analytics_store import Store, merge_as_time_would, store, wait_for_merges
from benchmarks.django_setup import positive_number, set_up_django
from benchmarks.page_addresses import page_addresses, prepare_records
from benchmarks.pages_assets import AssetBytes, asset_bytes
from benchmarks.redis_server import redis_server

_WARM_UP = 2
_LATE = "Still loading."
_KILOBYTE = 1000
# The bounds of the server's time in ms by the name of the page's URL; every other page is a list.
_BOUNDS = {"index": 400, "analytics_requests_detail": 250, "session": 250}
_LIST_BOUND = 200


@dataclass
class PageTimes:
    name: str
    html_bytes: int = 0
    assets: AssetBytes = field(default_factory=lambda: AssetBytes(0, 0))
    first: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)
    late: int = 0
    failures: int = 0
    # The CPU of one call in ms: of the benchmark's process, and of the engine unless that is a foreign server.
    own_cpu: float = 0.0
    engine_cpu: float | None = None
    queries: list[QueryTimes] = field(default_factory=list)

    @property
    def bound(self) -> int:
        return _BOUNDS.get(self.name, _LIST_BOUND)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    # A SIGTERM to the benchmark also ends its engine.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with store(options.data) as measured, redis_server() as redis_url:
        # The client of Django names a host of its own.
        set_up_django(measured, REDIS_URL=redis_url, ALLOWED_HOSTS="testserver,localhost")
        found = asyncio.run(_measure(options, measured))
    print(markdown(found, options.requests, options.range))
    if options.explain:
        print("", explained(found), sep="\n")
    return 1 if any(page.failures for page in found) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--requests", type=positive_number, default=10_000_000, help="how many to generate")
    parser.add_argument("--days", type=positive_number, default=90)
    parser.add_argument("--content-days", type=int, default=30, help="how many of the newest days have texts")
    parser.add_argument("--calls", type=positive_number, default=40, help="of each page (default 40)")
    parser.add_argument("--range", default="24h", help="the range of time of the pages: 1h, 24h, 7d, 30d or month")
    parser.add_argument("--data", type=Path, help="keep the store here, and reuse what an earlier run left")
    parser.add_argument("--explain", action="store_true", help="also say which queries a page comes down to")
    parser.add_argument("--only", default="", help="pages whose name contains this")
    return parser.parse_args(arguments)


async def _measure(options: argparse.Namespace, measured: Store) -> list[PageTimes]:
    project = await asyncio.to_thread(_filled_project, options, measured)
    browser = await asyncio.to_thread(_signed_in)
    found: list[PageTimes] = []

    async def opened(address: str) -> str:
        return (await _opened(browser, address))[0]

    addresses = [pair async for pair in page_addresses(opened, project, options.range)]
    for name, address in tqdm(addresses, desc="opening", unit="page", disable=None):
        if options.only in name:
            found.append(await _page(browser, name, address, options.calls, measured))
    return found


def _filled_project(options: argparse.Namespace, measured: Store) -> str:
    from benchmarks.analytics_traffic import HistorySize, project_with_traffic

    size = HistorySize(options.requests, options.days, min(options.content_days, options.days))
    traffic = project_with_traffic(size, measured)
    wait_for_merges()
    merge_as_time_would()
    prepare_records(traffic.project)
    return str(traffic.project)


def _signed_in() -> Any:
    """Returns a client of Django's ASGI handler, whose panels load side by side as in production."""
    from django.contrib.auth.models import User
    from django.test import AsyncClient

    person, _ = User.objects.get_or_create(username="operator", defaults={"is_staff": True, "is_superuser": True})
    client = AsyncClient(raise_request_exception=False)
    client.force_login(person)
    return client


async def _page(browser: Any, name: str, address: str, calls: int, measured: Store) -> PageTimes:
    from benchmarks.analytics_queries import watched

    times = PageTimes(name)
    for _ in range(_WARM_UP):
        await _opened(browser, address)
    with watched(measured) as queries:
        engine, own = measured.cpu_seconds(), time.process_time()
        for _ in range(calls):
            text, status, first, last = await _opened(browser, address)
            times.first.append(first)
            times.last.append(last)
            times.failures += status != 200
            times.late += _LATE in text
    times.queries = [query.per_call(calls) for query in queries]
    times.own_cpu = (time.process_time() - own) * 1000 / calls
    if measured.engine is not None:
        times.engine_cpu = (measured.cpu_seconds() - engine) * 1000 / calls
    times.html_bytes = len(text.encode())
    times.assets = asset_bytes(text)
    return times


async def _opened(browser: Any, address: str) -> tuple[str, int, float, float]:
    started = time.perf_counter()
    response = await browser.get(address)
    if not response.streaming:
        passed = (time.perf_counter() - started) * 1000
        return response.content.decode(), response.status_code, passed, passed
    first, chunks = 0.0, []
    async for chunk in response:
        first = first or (time.perf_counter() - started) * 1000
        chunks.append(chunk)
    return b"".join(chunks).decode(), response.status_code, first, (time.perf_counter() - started) * 1000


def markdown(pages: Sequence[PageTimes], requests: int, range_name: str) -> str:
    rows = [
        f"Pages over {requests:,} requests, range {range_name}, {machine_report.machine()}",
        "",
        "| Page | First byte p50 | p95 | Whole p50 | p95 | Bound | Own CPU | Engine CPU | HTML KB | Script KB |"
        " Style KB | When opened KB | Late | Failed |",
        f"|{'---|' * 14}",
    ]
    for page in pages:
        assets = page.assets
        sizes = (page.html_bytes, assets.scripts, assets.styles, assets.later_scripts + assets.later_styles)
        cells = [
            page.name,
            *(f"{value:.0f}" for value in (*_p50_p95(page.first), *_p50_p95(page.last))),
            str(page.bound),
            f"{page.own_cpu:.0f}",
            "-" if page.engine_cpu is None else f"{page.engine_cpu:.0f}",
            *(f"{size / _KILOBYTE:.0f}" for size in sizes),
            str(page.late),
            str(page.failures),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def explained(pages: Sequence[PageTimes]) -> str:
    rows = ["| Page | Query | Runs | ms |", "|---|---|---|---|"]
    for page in pages:
        rows += [
            f"| {page.name} | {query.name} | {query.runs:.1f} | {query.milliseconds:.0f} |" for query in page.queries
        ]
    return "\n".join(rows)


def _p50_p95(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


if __name__ == "__main__":
    sys.exit(main())
