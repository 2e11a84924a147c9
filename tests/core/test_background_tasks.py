from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from core.processes import background_tasks
from core.processes.background_tasks import (
    Failures,
    failures_of_host,
    keep_running,
    keep_thread_running,
    note_run,
    watch,
)
from core.processes.monitoring import TASKS
from core.processes.notices import NoticeWriter
from tests.waiting import eventually, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
APPS = ("config", "agent", "console", "gateway", "rollouts", "prompts", "analytics", "integrations", "core")
_STARTS = re.compile(r"\bcreate_task\(|\bensure_future\(|\bthreading\.(?:Thread|Timer)\(")
# The places that start a task or thread without watching over it, by who learns of its failure.
OTHERWISE = {
    # Their caller awaits them.
    "agent/turn/loop.py": 1,
    "analytics/proof/promises.py": 2,
    "agent/mcp/server.py": 1,
    "agent/worker/threads.py": 1,
    "config/supervisor/background_thread.py": 1,
    "config/supervisor/children.py": 3,
    "config/supervisor/processes.py": 1,
    "config/supervisor/supervise.py": 3,
    "core/ui/panels.py": 1,
    "gateway/pipeline/parts.py": 1,
    "gateway/snapshot/store.py": 1,
    "gateway/experiments/run.py": 1,
    "integrations/transport/access_tokens.py": 1,
    "integrations/connectivity/exchange.py": 1,
    "integrations/health/sync.py": 1,
    "integrations/media/fetcher.py": 1,
    # They belong to one request or connection, which fails with them.
    "analytics/clickhouse/engine/server.py": 1,
    "config/supervisor/acceptor.py": 1,
    "gateway/pipeline/internal_client.py": 1,
    "gateway/pipeline/heartbeat.py": 1,
    "gateway/pipeline/watch.py": 1,
    # A task that is kept running raises their failures.
    "gateway/limits/seeding.py": 1,
    # They log their own failures.
    "gateway/pipeline/quality.py": 1,
    "gateway/http/readyz.py": 1,
    # It is shielded from the end of its request, which waits for it.
    "gateway/batches/results.py": 1,
    # `watch` is told of one in the next lines, and the other is awaited.
    "config/supervisor/renewal.py": 2,
    # `watch` is told of them in the next lines.
    "gateway/cache/store.py": 2,
    "gateway/limits/cluster.py": 1,
    "gateway/limits/limiter.py": 1,
    "gateway/runtime/kept_ids.py": 1,
    "gateway/runtime/traced_requests.py": 1,
}


@pytest.fixture(autouse=True)
def own_tally(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(background_tasks, "notices_dir", lambda: tmp_path)
    monkeypatch.setattr(background_tasks, "_tally", background_tasks._Tally())


def test_sources__tasks_and_threads__are_kept_watched_or_waited_for() -> None:
    found = Counter(
        path.relative_to(ROOT).as_posix()
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        for _ in _STARTS.findall(path.read_text(encoding="utf-8"))
    )
    del found["core/processes/background_tasks.py"]

    assert found == OTHERWISE


async def test_task__fails_twice__is_logged_counted_and_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    runs = iter([OSError("first"), KeyError("second")])
    goes_on = asyncio.Event()

    async def work() -> None:
        if (error := next(runs, None)) is not None:
            raise error
        goes_on.set()
        await asyncio.Event().wait()

    with caplog.at_level(logging.ERROR, "core.background_tasks"):
        task = keep_running("test.work", work)
        await eventually(goes_on.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [record.getMessage() for record in caplog.records] == [
        "background_task.failed name=test.work again_after_seconds=0.25",
        "background_task.failed name=test.work again_after_seconds=0.50",
    ]
    assert "KeyError: 'second'" in caplog.text
    failures = failures_of_host()["test.work"]
    assert (failures.count, failures.error) == (2, "KeyError")


async def test_task__work_that_returns__ends() -> None:
    async def work() -> None:
        await asyncio.sleep(0)

    await keep_running("test.work", work)

    assert failures_of_host() == {}


async def test_task__cancelled__ends_with_what_its_work_does_then() -> None:
    began, cleaned_up = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned_up.set()

    task = keep_running("test.work", work)
    await eventually(began.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert cleaned_up.is_set()
    assert failures_of_host() == {}


def test_thread__fails_even_by_an_exit__is_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    runs = iter([SystemExit(1), MemoryError()])
    goes_on = threading.Event()

    def work() -> None:
        if (error := next(runs, None)) is not None:
            raise error
        goes_on.set()

    with caplog.at_level(logging.ERROR, "core.background_tasks"):
        keep_thread_running("test.thread", work)
        wait_until(goes_on.is_set)

    assert len(caplog.records) == 2
    assert failures_of_host()["test.thread"].count == 2


async def test_watched_task__fails__is_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise RuntimeError("once")

    with caplog.at_level(logging.ERROR, "core.background_tasks"):
        task = asyncio.get_running_loop().create_task(work(), name="test.once")
        watch(task)
        await asyncio.wait([task])

    assert "RuntimeError: once" in caplog.text
    assert failures_of_host()["test.once"].count == 1


def test_failures__of_two_processes__are_one_alarm_until_they_are_long_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    background_tasks._tally.add("test.work", ValueError())
    other = NoticeWriter(tmp_path, "tasks-1", max_bytes=100)
    other.put(msgspec.json.encode({"test.work": Failures(count=1, alarming=time.time() + 1, error="KeyError")}))
    found = TASKS.ask()
    other.close()

    [alarm] = TASKS.alarms(found)
    assert (alarm.kind, alarm.subject) == ("background_task_failed", "test.work")
    assert "KeyError" in alarm.text
    assert [sample.value for metric in TASKS.metrics(found) for sample in metric.samples] == [2.0]
    later = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: later)
    assert list(TASKS.alarms(found)) == []


def test_periodic_task__fails_three_times_in_a_row__is_an_alarm_until_it_succeeds() -> None:
    for error in (OSError(), None, OSError(), OSError()):
        note_run("test.periodic", error)
    assert list(TASKS.alarms(TASKS.ask())) == []

    note_run("test.periodic", KeyError())
    [alarm] = TASKS.alarms(TASKS.ask())
    assert (alarm.kind, alarm.subject) == ("background_task_failed", "test.periodic")
    assert "KeyError" in alarm.text

    note_run("test.periodic", None)
    assert list(TASKS.alarms(TASKS.ask())) == []
    assert failures_of_host()["test.periodic"].count == 4
