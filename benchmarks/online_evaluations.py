"""`python -m benchmarks.online_evaluations` judges answers that are due on worker processes, by a scripted judge whose
costs and failures are by chance, with PostgreSQL, Redis and the engine of its own. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.django_setup import positive_number

_ARMS = ("target", "baseline")
# The processes have to start before the first is killed.
_ASKED_BEFORE_KILL = 0.1
_MAX_WAIT_SECONDS = 900.0
_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Course:
    ends: Counter[tuple[str, str]]
    skipped_by_arm: tuple[int, int]
    tasks: int
    asked: int
    scores: int
    seconds: float
    cpu_seconds: float
    budget: Decimal
    spent: Decimal
    cost_of_tasks: Decimal
    reserved: Decimal


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-online-", dir="/tmp")))
        folder.chmod(0o755)
        environment = _set_up(folder, stack)
        course = _run(options, folder, environment, stack)
    print("\n".join(lines(course, options.workers, options.kill)))
    return 0 if is_right(course) else 1


def is_right(course: Course) -> bool:
    """Returns whether every task is done or missing with a reason, none twice, and the money is right to the last
    digit."""
    return (
        sum(course.ends.values()) == course.tasks
        and not course.ends["due", ""]
        and course.scores == course.ends["done", ""]
        and course.spent == course.cost_of_tasks
        and course.spent <= course.budget
        and not course.reserved
    )


def lines(course: Course, workers: int, killed: int) -> Iterator[str]:
    yield "| Tasks | Workers | Killed | Done | Missing | Asked | Tasks a minute | Worker CPU ms/task | Spent | Budget |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    done = course.ends["done", ""]
    asked = max(course.asked, 1)
    yield (
        f"| {course.tasks:,} | {workers} | {killed} | {done:,} | {course.tasks - done:,} | {course.asked:,}"
        f" | {60 * asked / course.seconds:,.0f} | {1000 * course.cpu_seconds / asked:.1f}"
        f" | ${course.spent:f} | ${course.budget:f} |"
    )
    yield ""
    yield "Ends: " + ", ".join(f"{' '.join(filter(None, end))} {count:,}" for end, count in sorted(course.ends.items()))
    target, baseline = course.skipped_by_arm
    yield f"Skipped of the target {target:,}, of the baseline {baseline:,}."
    yield "All is done or missing, nothing twice, the money right." if is_right(course) else "NOT RIGHT"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.online_evaluations", description=__doc__)
    parser.add_argument("--tasks", type=positive_number, default=1_000)
    parser.add_argument("--workers", type=positive_number, default=1)
    parser.add_argument(
        "--kill", type=int, default=0, help="so many of the workers, when a tenth of the tasks was asked"
    )
    parser.add_argument("--budget", type=Decimal, default=Decimal(1000), help="in dollars")
    return parser.parse_args(arguments)


def _set_up(folder: Path, stack: ExitStack) -> dict[str, str]:
    from tests.stores import Stores, migrate

    stores = Stores(folder, stack)
    environment = {**stores.environment, "VAR_DIR": str(folder / "var"), "ALLOW_PRIVATE_UPSTREAMS": "1"}
    migrate(folder, environment)
    os.environ.update({**environment, "DJANGO_SETTINGS_MODULE": "config.settings.base", "ALLOWED_HOSTS": "*"})
    import django

    django.setup()
    return environment


def _run(options: argparse.Namespace, folder: Path, environment: dict[str, str], stack: ExitStack) -> Course:
    from integrations.models import ModelPrice
    from tests.fakes.scripted import ScriptedServer
    from tests.gateway.evaluations.conftest import make_scene
    from tests.gateway.evaluations.online import judge
    from tests.gateway.evaluations.outages import by_chance, work

    server = stack.enter_context(ScriptedServer())
    scene = make_scene(server, [by_chance(7)], folder / "spool-of-the-log")
    evaluation_id = judge(scene, monthly_budget_usd=float(options.budget))
    # A request reserves less than half a cent then, and costs an eighth of a cent on average.
    ModelPrice.objects.update(output_cost_per_1m=0)
    # The first run of a worker finds nothing: what it costs is the start.
    before = _cpu_seconds()
    work(folder, **environment)
    start = _cpu_seconds() - before
    _make_tasks(scene, UUID(evaluation_id), options.tasks)
    before = _cpu_seconds()
    processes = _judge(options, folder, environment, scene)
    last = time.monotonic()
    cpu = _cpu_seconds() - before - start * processes
    received = scene.script.received
    seconds = last - received[0].arrived_at if received else 1.0
    return _course(evaluation_id, asked=len(received), seconds=seconds, cpu=cpu)


def _make_tasks(scene: Any, evaluation_id: UUID, count: int) -> None:
    """Makes as many tasks as asked for, where a minute's sample would have a thousand at most."""
    from django.utils import timezone

    from analytics.models import EvaluationTask, OnlineEvaluation
    from analytics.online_evaluations.sampling import position_of
    from tests.gateway.evaluations.outages import entries_of, store_all

    evaluation = OnlineEvaluation.objects.get(pk=evaluation_id)
    version = evaluation.evaluator.versions.get()
    for arm in _ARMS:
        entries = entries_of(scene, count // 2 if arm == "target" else count - count // 2, variant=arm)
        store_all(scene, entries)
        tasks = [
            EvaluationTask(
                project=scene.project,
                evaluation=evaluation,
                version=version,
                request_id=UUID(entry.record.request_id),
                requested_at=_time_of(entry.record.ts),
                variant=arm,
                due_at=timezone.now(),
                position=position_of(evaluation.pk, evaluation.evaluator_id, UUID(entry.record.request_id)),
            )
            for entry in entries
        ]
        EvaluationTask.objects.bulk_create(tasks, batch_size=_AT_ONCE)
    # In one minute both arms stand by hash.
    EvaluationTask.objects.update(due_at=timezone.now())


def _time_of(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def _judge(options: argparse.Namespace, folder: Path, environment: dict[str, str], scene: Any) -> int:
    from analytics.models import EvaluationTask
    from tests.gateway.evaluations.outages import pass_time, start_worker

    workers = [start_worker(folder, f"worker-{number}", **environment) for number in range(options.workers)]
    processes = len(workers)
    try:
        if options.kill:
            scene.script.wait_for(int(options.tasks * _ASKED_BEFORE_KILL), _MAX_WAIT_SECONDS)
            for worker in workers[: options.kill]:
                worker.kill()
        _wait(workers)
        while EvaluationTask.objects.filter(state="due").exists():
            # What was put back, and what a dead worker had.
            pass_time(1)
            workers = [start_worker(folder, f"worker-{number}", **environment) for number in range(options.workers)]
            processes += len(workers)
            _wait(workers)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    return processes


def _wait(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        worker.wait(_MAX_WAIT_SECONDS)


def _course(evaluation_id: str, *, asked: int, seconds: float, cpu: float) -> Course:
    from analytics.models import EvaluationBudget, EvaluationTask, Score
    from tests.gateway.evaluations.online import ends, spent

    budget = EvaluationBudget.objects.get(evaluation=UUID(evaluation_id))
    skipped = EvaluationTask.objects.filter(evaluation=UUID(evaluation_id), state="skipped")
    target, baseline = (skipped.filter(variant=arm).count() for arm in _ARMS)
    return Course(
        ends=Counter(ends(evaluation_id)),
        skipped_by_arm=(target, baseline),
        tasks=EvaluationTask.objects.filter(evaluation=UUID(evaluation_id)).count(),
        asked=asked,
        scores=Score.objects.values("request_id").distinct().count(),
        seconds=seconds,
        cpu_seconds=cpu,
        budget=budget.budget_usd,
        spent=budget.spent_usd,
        cost_of_tasks=spent(evaluation_id),
        reserved=budget.reserved_usd,
    )


def _cpu_seconds() -> float:
    """Returns the CPU of all worker processes that have ended, and of the stores' helpers that did."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
