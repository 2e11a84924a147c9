"""`manage.py backup` while a service serves, and `manage.py restore` into the other kind of SQL database."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai
import requests

from tests.live.conftest import StartService
from tests.live.prompts import Team
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.services import START_SECONDS, start_postgresql
from tests.waiting import wait_until

JSON = dict[str, Any]


def run(var_dir: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env={**minimal_environment(var_dir), **environment},
        capture_output=True,
        text=True,
        timeout=2 * START_SECONDS,
        check=False,
    )


def done(var_dir: Path, *words: str, **environment: str) -> str:
    finished = run(var_dir, *words, **environment)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def backup_of(printed: str) -> Path:
    return Path(printed.rpartition("backup: ")[2].strip())


class Traffic:
    def __init__(self, team: Team) -> None:
        self.statuses: list[int] = []
        self._team = team
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        with self._team.client() as client:
            while not self._ended.is_set():
                self.statuses.append(ask(client, "during"))


def ask(client: openai.OpenAI, session: str) -> int:
    raw = client.chat.completions.with_raw_response.create(
        model="sandbox/echo",
        messages=[{"role": "user", "content": f"Remember {session}"}],
        extra_headers={"x-svc-session-id": session, "x-svc-user-id": f"user of {session}"},
    )
    return raw.http_response.status_code


def get(team: Team, path: str) -> requests.Response:
    headers = {"Authorization": f"Bearer {team.api_key}", "X-Project-Id": team.project_id}
    query = {"project_id": team.project_id}
    return requests.get(f"{team.service.base_url}/api/llm/{path}", headers=headers, params=query, timeout=60)


def send(team: Team, method: str, path: str, body: JSON | None = None) -> requests.Response:
    headers = {"Authorization": f"Bearer {team.api_key}", "X-Project-Id": team.project_id}
    query = {"project_id": team.project_id}
    url = f"{team.service.base_url}/api/llm/{path}"
    return requests.request(method, url, headers=headers, params=query, json=body, timeout=60)


def total(team: Team) -> int:
    return int(get(team, "metrics/overview").json()["total_requests"])


def configured(service: LiveService) -> Team:
    team = Team(service, "kept")
    made = send(team, "POST", "integrations", {"provider": "groq", "api_key": "gsk-of-the-backup-1234"})
    assert made.status_code == 201, made.text
    prompt = team.prompt("greeting", *({"messages": [{"role": "system", "content": text}]} for text in ("Hi", "Hello")))
    prompt.rollout(stages=[{"weight": 10}, {"weight": 100}])
    for session in ("kept", "erased before", "erased after"):
        with team.client() as client:
            assert {ask(client, session) for _ in range(3)} == {200}
    wait_until(lambda: total(team) == 9, what="nine requests in the log")
    return team


SHOWN = ("integrations", "prompts/configs", "settings", "sessions/kept")


def shown(team: Team) -> dict[str, Any]:
    answers = {path: get(team, path) for path in SHOWN}
    assert {answer.status_code for answer in answers.values()} == {200}, {p: a.text for p, a in answers.items()}
    rollouts = get(team, "prompts/rollouts").json()["results"]
    return {
        **{path: answer.json() for path, answer in answers.items()},
        "rollouts": [(rollout["id"], rollout["status"]) for rollout in rollouts],
    }


def test_backup__while_serving__restores_onto_the_other_kind(start_service: StartService, tmp_path: Path) -> None:
    service = start_service()
    team, place = configured(service), str(tmp_path / "backups")
    assert send(team, "DELETE", "sessions/erased before").status_code == 204
    # A backup made before a worker has erased the session holds its requests, which the restore then erases too.
    wait_until(lambda: "deletion.done" in service.log_since_start, what="the end of the session")
    with Traffic(team) as traffic:
        wait_until(lambda: len(traffic.statuses) > 5, what="some requests")
        first = backup_of(done(service.var_dir, "backup", place))
    assert set(traffic.statuses) == {200}
    wait_until(lambda: total(team) == 9 + len(traffic.statuses), what="all requests in the log")
    assert send(team, "DELETE", "sessions/erased after").status_code == 204
    done(service.var_dir, "backup", place, "--without-log")
    before = shown(team)
    assert service.stop_at_once() == 0
    secrets = {
        name.upper(): (service.var_dir / "secrets" / name).read_text() for name in ("secret_key", "encryption_keys")
    }

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gw-backup-")))
        folder.chmod(0o755)
        postgresql, url = start_postgresql(folder / "pg")
        stack.callback(lambda: postgresql.stop(signal.SIGINT))
        environment = {"DATABASE_URL": url, **secrets}
        shutil.rmtree(service.var_dir)
        printed = done(service.var_dir, "restore", place, "--name", first.name, **environment)
        restored = start_service(environment)
        team.service = restored

        assert shown(team) == before
        assert "deletions: 2, 3 requests made anonymous again" in printed
        assert 9 <= total(team) <= 9 + len(traffic.statuses)
        assert get(team, "sessions/erased before").status_code == 404
        assert get(team, "sessions/erased after").status_code == 404
        with team.client() as client:
            assert ask(client, "after") == 200
