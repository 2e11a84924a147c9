"""`python -m benchmarks.analytics` sends questions to the analytics API over millions of requests. See
benchmarks/README.md."""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from benchmarks import report as machine_report
from benchmarks.analytics_report import QuestionTimes, Report, explained, markdown, picture, write
from benchmarks.analytics_store import Store, merge_as_time_would, store, table_sizes, wait_for_merges
from benchmarks.django_setup import positive_number, set_up_django
from benchmarks.targets.base import ROOT

if TYPE_CHECKING:
    from benchmarks.analytics_questions import Question, Sample
    from benchmarks.analytics_traffic import ManagementApi

_WARM_UP = 3
_DOCS = ROOT / "benchmarks" / "results" / "analytics.md"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    # A SIGTERM to the benchmark also ends its engine.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with store(options.data) as measured:
        set_up_django(measured)
        found = _measure(options, measured)
    print(markdown(found))
    if options.explain:
        print("", explained(found), sep="\n")
    if options.json is not None:
        options.json.write_text(json.dumps(asdict(found), indent=1) + "\n")
    if options.picture is not None:
        options.picture.write_text(picture(found))
    if options.write_docs:
        write(_DOCS, found)
    return 1 if any(question.failures for question in found.questions) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analytics", description=__doc__)
    parser.add_argument(
        "--requests", type=positive_number, default=10_000_000, help="how many to generate (default 10,000,000)"
    )
    parser.add_argument("--days", type=positive_number, default=90)
    parser.add_argument("--content-days", type=int, default=30, help="how many of the newest days have texts")
    parser.add_argument("--calls", type=positive_number, default=60, help="of each question (default 60)")
    parser.add_argument("--data", type=Path, help="keep the store here, and reuse what an earlier run left")
    parser.add_argument("--only", default="", help="questions whose group or name contains this")
    parser.add_argument("--explain", action="store_true", help="also say what every query of a question takes")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--picture", type=Path, help="write an SVG to this file")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into benchmarks/results/analytics.md")
    return parser.parse_args(arguments)


def _measure(options: argparse.Namespace, measured: Store) -> Report:
    from benchmarks.analytics_questions import QUESTIONS, take_sample
    from benchmarks.analytics_traffic import HistorySize, ManagementApi, project_with_traffic

    size = HistorySize(options.requests, options.days, min(options.content_days, options.days))
    traffic = project_with_traffic(size, measured)
    wait_for_merges()
    merge_as_time_would()
    sample = take_sample(traffic.project, traffic.end, options.days)
    api = ManagementApi(traffic.project, traffic.key)
    chosen = [one for one in QUESTIONS if options.only.lower() in f"{one.group} {one.name}".lower()]
    questions = [
        _ask(api, one, sample, options.calls, measured)
        for one in tqdm(chosen, desc="asking", unit="question", disable=None)
    ]
    return Report(
        requests=options.requests,
        days=options.days,
        content_days=size.content_days,
        generation_seconds=traffic.seconds,
        generation_cpu_seconds=traffic.cpu_seconds,
        peak_megabytes=measured.peak_megabytes(),
        tables=table_sizes(),
        questions=questions,
        machine=machine_report.machine(),
    )


def _ask(api: ManagementApi, question: Question, sample: Sample, calls: int, measured: Store) -> QuestionTimes:
    from benchmarks.analytics_queries import watched

    for _ in range(_WARM_UP):
        api.send(question.ask(sample))
    milliseconds: list[float] = []
    statuses: Counter[int] = Counter()
    with watched(measured) as queries:
        engine, own = measured.cpu_seconds(), time.process_time()
        for _ in range(calls):
            call = question.ask(sample)
            started = time.perf_counter()
            statuses[api.send(call)] += 1
            milliseconds.append((time.perf_counter() - started) * 1000)
    engine_cpu, own_cpu = measured.cpu_seconds() - engine, time.process_time() - own
    milliseconds.sort()
    return QuestionTimes(
        group=question.group,
        name=question.name,
        calls=calls,
        p50=statistics.median(milliseconds),
        p95=milliseconds[min(calls - 1, int(0.95 * calls))],
        slowest=milliseconds[-1],
        engine_cpu=engine_cpu * 1000 / calls if measured.engine is not None else None,
        own_cpu=own_cpu * 1000 / calls,
        queries=[one.per_call(calls) for one in queries],
        failures={str(status): count for status, count in statuses.items() if status != 200},
    )


if __name__ == "__main__":
    sys.exit(main())
