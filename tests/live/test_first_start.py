from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.live.conftest import StartService
from tests.live.service import ROOT, LiveService, minimal_environment, run_curl
from tests.services import START_SECONDS
from tests.waiting import wait_until


def test_first_start__printed_curl_line__answers(live_service: LiveService) -> None:
    answer = run_curl(live_service.curl)

    assert answer["choices"][0]["message"]["content"] == "Hello"
    assert answer["usage"]["total_tokens"] > 0


def test_first_start__one_session__is_listed_with_its_cost(live_service: LiveService) -> None:
    client = live_service.openai(default_headers={"x-svc-session-id": "first-start"})
    client.chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}])

    def listed() -> dict[str, object] | None:
        response = live_service.manage("sessions", name_pattern="first-start")
        assert response.status_code == 200, response.text
        results: list[dict[str, object]] = response.json()["results"]
        return results[0] if results else None

    session = wait_until(listed)
    assert session["request_count"] == 1
    assert session["error_count"] == 0


def test_later_start__same_var_dir__prints_the_address_only_and_keeps_the_key(start_service: StartService) -> None:
    first = start_service(empty=True)
    assert first.stop() == 0

    second = start_service()

    assert second.output.strip().count("\n") == 0
    assert second.base_url in second.output
    second.api_key = first.api_key
    # Both start where they are needed.
    assert (second.pid("sandbox"), second.pid("exporter")) == (None, None)
    answer = second.openai().chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Hi"}])
    assert answer.choices[0].message.content == "Hi"
    assert second.stop() == 0


def test_first_start__ended_before_anybody_saw_the_key__next_one_shows_a_new_key(
    start_service: StartService, tmp_path: Path
) -> None:
    """A start whose output is discarded counts like one that died before it printed: nobody has seen its key."""
    unseen = subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--without", "celery"],
        cwd=ROOT,
        env={**minimal_environment(tmp_path / "var"), "WEB_WORKERS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _has_first_key(tmp_path / "var" / "db.sqlite3"), seconds=START_SECONDS)
    finally:
        unseen.terminate()
        unseen.wait(timeout=START_SECONDS)

    service = start_service({"WEB_WORKERS": "1"})

    assert service.output.index(service.api_key) < service.output.index("Serving ")
    answer = run_curl(service.curl)
    assert answer["choices"][0]["message"]["content"] == "Hello"
    assert service.stop() == 0


def _has_first_key(database: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("SELECT count(*) FROM core_firstkey").fetchone() == (1,))
    except sqlite3.OperationalError:
        return False  # The table has not been made yet.


def test_start__without_sandbox__announces_none(start_service: StartService) -> None:
    service = start_service({"SANDBOX": "0", "WEB_WORKERS": "1"})

    assert not (service.var_dir / "run" / "sandbox.url").exists()
    assert service.pid("sandbox") is None
    assert service.stop() == 0
