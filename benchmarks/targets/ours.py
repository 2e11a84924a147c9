from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, ClassVar

import psutil

from analytics.shipper.spool_status import read_status
from benchmarks import processes
from benchmarks.targets.base import ROOT, Endpoint, Target, run_step
from benchmarks.waiting import wait_until
from config.supervisor import run_files

# The model has a price, so that the cost of every request is computed; its name is the clients' form.
_MODEL = "gpt-4o-mini"
_START_SECONDS = 120.0


class Ours(Target):
    name: ClassVar[str] = "ours"
    label: ClassVar[str] = "**Prompt Gateway**"
    workers: ClassVar[int] = 1
    sandbox: ClassVar[bool] = False
    provider: ClassVar[str] = "openai"
    model: ClassVar[str] = _MODEL
    upstream_path: ClassVar[str] = "/v1"
    fields: ClassVar[dict[str, Any]] = {}

    @property
    def source(self) -> Path:
        return ROOT

    def version(self) -> str:
        return run_step(["git", "-C", str(ROOT), "describe", "--always", "--dirty"])

    def start(self, mock_port: int) -> Endpoint:
        port, environment = self._serve()
        made = self._bootstrap([sys.executable, str(self.source / "manage.py")], environment)
        authorization = {"authorization": f"Bearer {made['api_key']}"}
        api = f"http://127.0.0.1:{port}/api/llm"
        self._prepare(api, mock_port, {**authorization, "x-project-id": made["project_id"]})
        # Every request has a session, as a limit by session needs it: targets differ in settings, not in requests.
        headers = {**authorization, "x-svc-session-id": "bench"}
        return Endpoint(port, "/api/gateway/v1/chat/completions", self.model, headers, dict(self.fields))

    def _serve(self) -> tuple[int, dict[str, str]]:
        port = processes.free_port()
        environment = {
            "HOST": "127.0.0.1",
            "PORT": str(port),
            "VAR_DIR": str(self.workspace / "var"),
            "WEB_WORKERS": str(self.workers),
            "SANDBOX": str(int(self.sandbox)),
            "ALLOW_PRIVATE_UPSTREAMS": "1",
        }
        manage = str(self.source / "manage.py")
        self._launch([sys.executable, manage, "serve"], f"http://127.0.0.1:{port}/healthz", environment)
        # The service answers before the analytics store has its tables, and ships once it has them.
        wait_until(lambda: "shipper" in self.roles().values(), "the shipper did not start", seconds=_START_SECONDS)
        return port, environment

    def _bootstrap(self, manage: list[str], environment: dict[str, str], name: str = "bench") -> dict[str, str]:
        command = [*manage, "bootstrap", "--name", name, "--json"]
        # The command runs in the source's own folder, because Celery puts the current one in front of the module path.
        environment = {**psutil.Process().environ(), **environment}
        done = subprocess.run(command, cwd=self.source, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"bootstrap failed: {done.stderr.strip()[-300:]}")
        made: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
        return made

    def _prepare(self, api: str, mock_port: int, headers: dict[str, str]) -> None:
        mock = f"http://127.0.0.1:{mock_port}{self.upstream_path}"
        add_integration(api, self.provider, mock, headers)

    def serving(self) -> list[psutil.Process]:
        workers = self._web_workers()
        return [process for process in super().serving() if process.pid in workers]

    def beside(self) -> dict[str, list[psutil.Process]]:
        workers = self._web_workers()
        found = {role: processes.tree(pid) for pid, role in self.roles().items() if pid not in workers}
        named = {one.pid for of_role in found.values() for one in of_role} | workers
        return {**found, "supervisor": [one for one in super().serving() if one.pid not in named]}

    def has_work_left(self) -> bool:
        return read_status(self.workspace / "var" / "spool").unshipped_bytes > 0

    def roles(self) -> dict[int, str]:
        files = (self.workspace / "var" / "run").glob("*.pid")
        # The file of a process that ends meanwhile is gone.
        return {int(pid): file.stem for file in files if (pid := run_files.read(file)) is not None}

    def process_of(self, role: str, *, seconds: float = _START_SECONDS) -> psutil.Process:
        """Raises TimeoutError, which names the role, if none starts in time.

        The supervisor writes the file of a new process a moment after its start, which is long on a busy machine.
        """

        found: list[int] = []

        def is_found() -> bool:
            found[:] = (pid for pid, name in self.roles().items() if name == role)
            return bool(found)

        wait_until(is_found, f"no process of the service runs as {role}", seconds=seconds)
        return psutil.Process(found[0])

    def _web_workers(self) -> set[int]:
        return {pid for pid, role in self.roles().items() if role.startswith("web-")}


class OursTwice(Ours):
    name: ClassVar[str] = "ours-2"
    label: ClassVar[str] = "Prompt Gateway, 2 workers"
    workers: ClassVar[int] = 2


class OursAnthropic(Ours):
    name: ClassVar[str] = "ours-anthropic"
    label: ClassVar[str] = "Prompt Gateway, anthropic"
    provider: ClassVar[str] = "anthropic"
    model: ClassVar[str] = "claude-haiku-4-5"
    upstream_path: ClassVar[str] = ""


class OursPrompt(Ours):
    """A managed prompt of two variables replaces the system message; a rollout decides between its versions."""

    name: ClassVar[str] = "ours-prompt"
    label: ClassVar[str] = "Prompt Gateway, prompt and rollout"
    fields: ClassVar[dict[str, Any]] = {
        "prompt_config": "bench",
        "prompt_variables": {"company": "Acme", "user_name": "Ann"},
        "user": "user-1",
    }

    def _prepare(self, api: str, mock_port: int, headers: dict[str, str]) -> None:
        super()._prepare(api, mock_port, headers)
        text = "You work for {{ company }}. Be kind to {{ user_name }}, and brief, and exact. " + "Stay polite. " * 20
        roll_out(api, "bench", text, headers)


class OursLimits(Ours):
    """Every limit is set and none is near: those of project, session, API key and end user are counted for each
    request."""

    name: ClassVar[str] = "ours-limits"
    label: ClassVar[str] = "Prompt Gateway, all limits"
    fields: ClassVar[dict[str, Any]] = {"user": "user-1"}

    def _prepare(self, api: str, mock_port: int, headers: dict[str, str]) -> None:
        super()._prepare(api, mock_port, headers)
        set_limits(api, headers)


class OursBefore(Ours):
    """An earlier revision of this project (`--before`), on today's libraries, for the cost of a change."""

    name: ClassVar[str] = "ours-before"
    label: ClassVar[str] = "Prompt Gateway, before"
    revision: ClassVar[str] = "HEAD"

    @property
    def source(self) -> Path:
        return self.workspace / "source"

    def install(self) -> None:
        self.source.mkdir(parents=True)
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", self.revision], capture_output=True, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", str(self.source)], input=archive, check=True)

    def version(self) -> str:
        return run_step(["git", "-C", str(ROOT), "rev-parse", "--short", self.revision])


def add_integration(api: str, provider: str, base_url: str, headers: dict[str, str]) -> None:
    body = {"provider": provider, "api_key": "sk-mock", "base_url": base_url, "enabled": True}
    _post(f"{api}/integrations", body, headers)


def begin_online_evaluation(api: str, headers: dict[str, str]) -> None:
    rule = {"name": "names the parcel", "kind": "contains", "definition": {"value": "parcel"}}
    evaluator = _post(f"{api}/evaluators", rule, headers)
    _post(f"{api}/online-evaluations", {"evaluator_id": evaluator["id"], "rate": 1}, headers)


def set_limits(api: str, headers: dict[str, str]) -> None:
    limits = {
        "rate_limit_enabled": True,
        "rate_limit_rpm": 2_000_000_000,
        "rate_limit_tpm": 2_000_000_000,
        "monthly_budget_usd": 100_000_000,
        "budget_hard_stop": True,
        "session_budget_usd": 100_000_000,
        "end_user_rpm": 2_000_000_000,
        "end_user_tpm": 2_000_000_000,
        "end_user_max_concurrent": 100_000,
        "end_user_monthly_budget_usd": 100_000_000,
    }
    _post(f"{api}/settings", limits, headers, method="PUT")
    of_key = {
        "rate_limit_rpm": 2_000_000_000,
        "rate_limit_tpm": 2_000_000_000,
        "max_concurrent_requests": 100_000,
        "monthly_budget_usd": 100_000_000,
        "total_budget_usd": 100_000_000,
    }
    (key,) = _post(f"{api}/keys", None, headers, method="GET")["results"]
    _post(f"{api}/keys/{key['id']}", of_key, headers, method="PATCH")


def add_prompt(api: str, name: str, text: str, headers: dict[str, str]) -> tuple[str, list[str]]:
    config = _post(f"{api}/prompts/configs", {"name": name}, headers)["id"]
    versions = [_post(f"{api}/prompts/configs/{config}/versions", {"system_prompt": text}, headers) for _ in "12"]
    return config, [version["id"] for version in versions]


def roll_out(api: str, name: str, text: str, headers: dict[str, str]) -> None:
    config, versions = add_prompt(api, name, text, headers)
    body = {
        "config_id": config,
        "target_version_id": versions[1],
        "name": name,
        "mode": "manual",
        "allocation_type": "user_sticky",
        "stages": [{"weight": 50}],
    }
    rollout = _post(f"{api}/prompts/rollouts", body, headers)["id"]
    _post(f"{api}/prompts/rollouts/{rollout}/start", {}, headers)


def _post(url: str, body: dict[str, Any] | None, headers: dict[str, str], method: str = "POST") -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - a loopback http address
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"content-type": "application/json", **headers},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - as above
        made: dict[str, Any] = json.load(response)
        return made
