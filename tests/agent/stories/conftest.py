from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from tests.agent.chat.playing import ChatReply, Made, Request, calls, read_events, says
from tests.fakes.scripted import ScriptedServer, Step
from tests.live.prompts import Team
from tests.live.service import LiveService
from tests.migrated import place_database, place_tables
from tests.waiting import TIMEOUT_SECONDS

# The agent's own requests must not change the figures that the tests ask for.
AGENT_MODEL = "openai/unpriced-agent"
PRICED = "sandbox/echo"


def results_of(request: Request) -> list[dict[str, Any]]:
    contents = []
    for message in reversed(request["messages"]):
        if message["role"] != "tool":
            break
        contents.append(message["content"])
    return [json.loads("\n".join(content.split("\n")[1:-1])) for content in reversed(contents)]


def looks_up(make: Callable[[list[dict[str, Any]]], list[Made]]) -> Step:
    """Calls tools with arguments made from the results of the round before."""

    async def step(received: Any, connection: Any) -> None:
        await calls(*make(results_of(json.loads(received.body))))(received, connection)

    return step


def answers(make: Callable[[list[dict[str, Any]]], str]) -> Step:
    return says(lambda request: make(results_of(request)))


@dataclass
class Project:
    team: Team
    upstream: ScriptedServer
    answered: int = 0

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.team.api_key}", "X-Project-Id": self.team.project_id}

    def play(self, *steps: Step) -> None:
        self.upstream.play("agent", *steps)

    def ask(self, message: str, **fields: Any) -> ChatReply:
        url = f"{self.team.service.base_url}/api/agent/chat"
        body = {"message": message, **fields}
        answer = requests.post(url, json=body, headers=self.headers, timeout=4 * TIMEOUT_SECONDS)
        assert answer.status_code == 200, answer.text
        return read_events(answer.content)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        url = f"{self.team.service.base_url}/api/llm/{path}"
        answer = requests.request(
            method, url, json=body, params=query, headers=self.headers, timeout=4 * TIMEOUT_SECONDS
        )
        assert answer.ok, answer.text
        return answer.json()

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, **query)

    def complete(self, text: str, *, model: str = PRICED, session: str = "", status: int = 200) -> None:
        answer = self._send(text, {"x-svc-session-id": session} if session else {}, model=model)
        assert answer.status_code == status, answer.text

    def arm(self, text: str, prompt: str) -> str | None:
        answer = self._send(text, {}, model="auto", prompt_config=prompt)
        assert answer.status_code in (200, 404), answer.text
        return answer.headers.get("x-svc-variant") or None

    def _send(self, text: str, headers: dict[str, str], **fields: Any) -> requests.Response:
        url = f"{self.team.service.base_url}/api/gateway/v1/chat/completions"
        body = {"messages": [{"role": "user", "content": text}], **fields}
        answer = requests.post(url, json=body, headers=self.headers | headers, timeout=4 * TIMEOUT_SECONDS)
        # A worker that knows the prompt and not yet its version asks a model that the project prefers.
        self.answered += answer.ok and answer.headers["x-svc-model-used"].endswith("echo")
        return answer


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    var_dir = tmp_path_factory.mktemp("stories") / "var"
    place_database(var_dir)
    place_tables(var_dir / "clickhouse")
    running = LiveService(var_dir, {"ALLOW_PRIVATE_UPSTREAMS": "1"})
    try:
        yield running
        assert running.stop() == 0
        assert "request.failed" not in running.log
        assert "Traceback" not in running.log
    finally:
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGKILL)
            running.process.wait()


@pytest.fixture(scope="package")
def project(service: LiveService) -> Iterator[Project]:
    with ScriptedServer() as upstream:
        made = Project(Team(service, "stories"), upstream)
        integration = {"provider": "openai", "api_key": "sk-scripted", "base_url": upstream.base_url("agent")}
        made.call("POST", "integrations", {**integration, "enabled": True})
        settings = {"agent_model": AGENT_MODEL, "preferred_models": ["sandbox/mirror"], "retry_enabled": False}
        made.call("PUT", "settings", settings)
        price = {"input_cost_per_1m": "2.50", "output_cost_per_1m": "10.00"}
        cached = {"cache_read_cost_per_1m": "1.25", "cache_write_cost_per_1m": "2.50"}
        made.call("PUT", "pricing/sandbox/echo", price | cached)
        yield made
