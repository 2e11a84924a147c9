from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Barrier
from typing import Any

import httpx2
import openai
import psutil
import requests

from tests.live.service import ROOT, LiveService, minimal_environment
from tests.services import START_SECONDS
from tests.waiting import wait_until

JSON = dict[str, Any]

# A minute is evaluated this long after its end; the default is two minutes.
EVALUATION_LAG_SECONDS = 5
SHORTENED = {"ROLLOUT_EVALUATION_LAG_SECONDS": str(EVALUATION_LAG_SECONDS)}

WORKERS = ("web-1", "web-2")


# The model that `auto` resolves to where no prompt names one.
_PREFER = """
from gateway.services import replace_settings
values = dict(preferred_models=["sandbox/mirror"])
replace_settings(project_id="{project_id}", values=values, actor="test")
"""

_BOOTSTRAP = """
import json
from core.services import bootstrap_project
made = [bootstrap_project(name=name) for name in {names!r}]
print(json.dumps([[str(one.project_id), one.api_key] for one in made]))
"""


class Project:
    def __init__(self, service: LiveService, project_id: str, api_key: str) -> None:
        self.service = service
        self.project_id = project_id
        self.api_key = api_key

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}", "X-Project-Id": self.project_id}

    def set(self, **settings: Any) -> None:
        url = f"{self.service.base_url}/api/llm/settings"
        response = requests.put(url, headers=self._headers, json=settings, timeout=30)
        assert response.status_code == 200, response.text

    def send(self, method: str, path: str, body: JSON | None = None) -> requests.Response:
        url = f"{self.service.base_url}/api/llm/prompts/{path}"
        return requests.request(method, url, headers=self._headers, json=body, timeout=30)

    def call(self, method: str, path: str, body: JSON | None = None) -> JSON:
        """Like `send`, but returns the JSON of the answer. Any status but 200 and 201 fails the test."""
        response = self.send(method, path, body)
        assert response.status_code in (200, 201), response.text
        answer: JSON = response.json()
        return answer

    def at_once(self, *calls: tuple[str, str, JSON | None]) -> list[requests.Response]:
        barrier = Barrier(len(calls))

        def run(call: tuple[str, str, JSON | None]) -> requests.Response:
            barrier.wait()
            return self.send(*call)

        with ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(run, calls))

    def prompt(self, name: str, *versions: JSON) -> Prompt:
        config = self.call("POST", "configs", {"name": name, "project_id": self.project_id})
        prompt = Prompt(self, name, config["id"])
        for version in versions:
            prompt.add(version)
        return prompt

    def client(self) -> openai.OpenAI:
        base_url = f"{self.service.base_url}/api/gateway/v1"
        # Connections never expire, so that a client keeps its worker however long a test pauses between two requests.
        http_client = openai.DefaultHttpxClient(limits=httpx2.Limits(keepalive_expiry=None), timeout=30)
        return openai.OpenAI(base_url=base_url, api_key=self.api_key, max_retries=0, http_client=http_client)


class Team(Project):
    def __init__(self, service: LiveService, name: str) -> None:
        made = json.loads(command(service, "bootstrap", "--name", name, "--json"))
        super().__init__(service, made["project_id"], made["api_key"])
        self.command("shell", "--verbosity", "0", "-c", _PREFER.format(project_id=self.project_id))

    def command(self, *arguments: str, **environment: str) -> str:
        return command(self.service, *arguments, **SHORTENED, **environment)


def new_projects(service: LiveService, names: Sequence[str], **environment: str) -> list[Project]:
    made = command(service, "shell", "--verbosity", "0", "-c", _BOOTSTRAP.format(names=list(names)), **environment)
    return [Project(service, *one) for one in json.loads(made)]


def command(service: LiveService, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**minimal_environment(service.var_dir), **environment},
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Prompt:
    def __init__(self, team: Project, name: str, config_id: str) -> None:
        self.team = team
        self.name = name
        self.config_id = config_id
        self.version_ids: list[str] = []

    def add(self, version: JSON) -> JSON:
        made = self.team.call("POST", f"configs/{self.config_id}/versions", version)
        self.version_ids.append(made["id"])
        return made

    def shown(self) -> JSON:
        return self.team.call("GET", f"configs/{self.config_id}")

    def usage(self, index: int) -> JSON:
        found: JSON = self.team.call("GET", f"configs/{self.config_id}/versions/{self.version_ids[index]}")["usage"]
        return found

    def new_rollout(self, **changes: Any) -> JSON:
        return {"config_id": self.config_id, "target_version_id": self.version_ids[-1], "name": self.name, **changes}

    def rollout(self, **changes: Any) -> Rollout:
        rollout = Rollout(self.team, self.team.call("POST", "rollouts", self.new_rollout(**changes))["id"])
        rollout.move("start")
        return rollout

    def answers(self, questions: Iterable[str]) -> list[Answer]:
        with self.team.client() as client:
            return [ask(client, self.name, question) for question in questions]


class Rollout:
    def __init__(self, team: Project, id: str) -> None:
        self.team = team
        self.id = id

    def move(self, move: str, **body: Any) -> JSON:
        return self.team.call("POST", f"rollouts/{self.id}/{move}", body)

    def shown(self) -> JSON:
        return self.team.call("GET", f"rollouts/{self.id}")

    def metrics(self) -> JSON:
        return self.team.call("GET", f"rollouts/{self.id}/metrics")

    def transition(self, action: str) -> JSON:
        (found,) = [row for row in self.shown()["transitions"] if row["action"] == action]
        row: JSON = found
        return row

    def wait_until_recorded(self, target: int, baseline: int) -> None:
        """Returns when the request log holds at least these numbers of requests of the two arms."""

        def recorded() -> bool:
            found = self.metrics()
            return bool(found["target"]["request_count"] >= target and found["baseline"]["request_count"] >= baseline)

        wait_until(recorded, what=f"{target} and {baseline} requests in the log")


@dataclass(frozen=True)
class Answer:
    sent_at: datetime
    status: int
    version: str
    variant: str
    warning: str
    text: str
    port: int

    @property
    def served(self) -> str:
        """`version variant`, with - for a missing one, or the warning where no prompt was injected."""
        if not self.version:
            return self.warning
        return f"{self.version} {self.variant or '-'}"

    @property
    def system_prompt(self) -> str | None:
        messages = json.loads(self.text)
        prompts = [message["content"] for message in messages if message["role"] == "system"]
        return prompts[0] if prompts else None


def ask(client: openai.OpenAI, config: str, question: str = "What have you got?") -> Answer:
    """Sends the request that clients always send, whatever the team changes behind it."""
    sent_at = datetime.now(UTC)
    try:
        raw = client.chat.completions.with_raw_response.create(
            model="auto",
            messages=[{"role": "user", "content": question}],
            extra_body={"prompt_config": config, "prompt_variables": {"goods": "tea"}},
        )
        response, text = raw.http_response, raw.parse().choices[0].message.content or ""
    except openai.APIStatusError as error:
        response, text = error.response, ""
    return Answer(
        sent_at=sent_at,
        status=response.status_code,
        version=response.headers.get("x-svc-prompt-version", ""),
        variant=response.headers.get("x-svc-variant", ""),
        warning=response.headers.get("x-svc-warning", ""),
        text=text,
        port=response.extensions["network_stream"].get_extra_info("client_addr")[1],
    )


class EachWorker:
    """Clients of one config, each connected to a different worker. Close the object after use."""

    def __init__(self, prompt: Prompt) -> None:
        self.prompt = prompt
        self._opened: list[openai.OpenAI] = []
        self._clients: dict[int, openai.OpenAI] = {}
        wait_until(self._reach_another, what="a connection to each worker")

    def __enter__(self) -> EachWorker:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._opened:
            client.close()

    def ask(self, question: str = "What have you got?") -> dict[int, Answer]:
        found = {}
        for pid, client in self._clients.items():
            found[pid] = ask(client, self.prompt.name, question)
            assert found[pid].port in client_ports(pid), "the connection was lost"
        return found

    def all_serve(self, expected: str) -> None:
        """Waits until each worker serves `expected` (see Answer.served)."""
        seen: list[Answer] = []

        def served() -> bool:
            seen[:] = self.ask().values()
            return {answer.served for answer in seen} == {expected}

        try:
            wait_until(served)
        except AssertionError:
            raise AssertionError(f"{expected!r} of every worker was expected: {seen}") from None

    def _reach_another(self) -> bool:
        pids = [pid for role in WORKERS if (pid := self.prompt.team.service.pid(role)) is not None]
        client = self.prompt.team.client()
        self._opened.append(client)
        port = ask(client, self.prompt.name).port
        for pid in pids:
            if port in client_ports(pid):
                self._clients.setdefault(pid, client)
        return len(pids) == len(WORKERS) and set(self._clients) == set(pids)


def client_ports(pid: int) -> set[int]:
    return {
        found.raddr[1] for found in psutil.Process(pid).net_connections(kind="tcp") if found.status == "ESTABLISHED"
    }


def statuses(responses: Sequence[requests.Response]) -> list[int]:
    return sorted(response.status_code for response in responses)
