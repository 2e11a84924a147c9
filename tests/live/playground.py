from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import requests
from playwright.async_api import Locator, Page, expect

from tests.fakes.scripted import DONE, FINISH, ROLE, USAGE_CHUNK, Script, ScriptedServer, Step, chunk
from tests.fakes.upstream import Connection, Received
from tests.live.prompts import Team
from tests.live.sessions import use_session
from tests.waiting import wait_until

PATH = "/admin/gateway/playground/"

_ACCOUNT = """
from django.contrib.auth.models import User
User.objects.create_user("{name}", password="{password}", is_staff=True)
"""
_PROVIDER = """
from gateway.services import replace_settings
from integrations.access.credentials import store_secret
from integrations.models import ModelPrice, ProviderIntegration
row = ProviderIntegration(project_id="{project_id}", provider="openai", base_url="{base_url}")
store_secret(row, "sk-scripted")
row.save()
values = dict(retry_enabled=False, judge_model="openai/judge")
replace_settings(project_id="{project_id}", values=values, actor="test")
for model, cost in (("good", "2"), ("better", "1")):
    ModelPrice.objects.create(project_id="{project_id}", provider="openai", model=model, source="manual",
                              input_cost_per_1m=cost, output_cost_per_1m=cost)
"""


@dataclass
class Account:
    name: str = field(default_factory=lambda: f"operator-{uuid.uuid4().hex[:8]}")
    password: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass
class Stage:
    team: Team
    upstream: ScriptedServer
    user: Account

    @property
    def url(self) -> str:
        return self.team.service.base_url + PATH

    def play(self, **steps: Step) -> Script:
        async def step(request: Received, connection: Connection) -> None:
            await steps[json.loads(request.body)["model"]](request, connection)

        return self.upstream.play("models", step)

    def manage(self, path: str, **parameters: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.team.api_key}", "X-Project-Id": self.team.project_id}
        url = f"{self.team.service.base_url}/api/llm/{path}"
        response = requests.get(url, headers=headers, params=parameters, timeout=30)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def kept_requests(self, session_id: str, count: int) -> list[dict[str, Any]]:
        def listed() -> list[dict[str, Any]] | None:
            found: list[dict[str, Any]] = self.manage("requests", session_id=session_id)["results"]
            return found if len(found) >= count else None

        return wait_until(listed, what=f"{count} requests of {session_id}")


def make_stage(team: Team, upstream: ScriptedServer) -> Stage:
    values = {"project_id": team.project_id, "base_url": upstream.base_url("models")}
    team.command("shell", "--verbosity", "0", "-c", _PROVIDER.format(**values))
    return Stage(team, upstream, make_account(team, "editor"))


def make_account(team: Team, role: str, name: str = "") -> Account:
    account = Account(name) if name else Account()
    team.command("shell", "--verbosity", "0", "-c", _ACCOUNT.format(name=account.name, password=account.password))
    give_role(team, account, role)
    return account


def give_role(team: Team, account: Account, role: str) -> None:
    team.command("add_member", account.name, "--project", team.project_id, "--role", role)


class PlaygroundPage:
    def __init__(self, page: Page, stage: Stage) -> None:
        self.page = page
        self.stage = stage
        self.run_button = page.get_by_role("button", name="Run")
        self.status = page.get_by_role("status")
        self.chosen = page.get_by_role("list", name="Chosen models").locator("span")

    async def sign_in(self) -> None:
        await use_session(self.page, self.stage.team, self.stage.user.name)

    async def open(self) -> None:
        await self.page.goto(f"{self.stage.url}?project={self.stage.team.project_id}")
        await self.ready()

    async def ready(self) -> None:
        await expect(self.page.locator("#playground[data-ready]")).to_be_visible()

    async def ask(self, text: str, *models: str) -> None:
        await self.page.get_by_label("Text of message 1").fill(text)
        await self.choose(*models)

    async def choose(self, *models: str) -> None:
        for model in models:
            field = self.page.get_by_role("combobox", name="Add a model")
            await field.fill(model)
            await field.press("Enter")

    async def run(self) -> None:
        await self.run_button.click()

    async def done(self, text: str) -> None:
        await expect(self.status).to_contain_text(text)
        await expect(self.run_button).to_be_enabled()

    def answer(self, model: str) -> Locator:
        return self.page.get_by_role("article", name=model, exact=True)

    def text(self, model: str) -> Locator:
        return self.page.get_by_label(f"Answer of {model}", exact=True)

    async def figures(self, model: str) -> dict[str, str]:
        column = self.answer(model)
        names, values = await column.locator("dt").all_inner_texts(), await column.locator("dd").all_inner_texts()
        return dict(zip(names, values, strict=True))


def gated(before: Iterable[str], gate: threading.Event, after: Iterable[str]) -> Step:
    async def step(request: Received, connection: Connection) -> None:
        await connection.start_stream()
        for event in [ROLE, *(chunk({"content": word}) for word in before)]:
            await connection.send_chunk(event)
        while not gate.is_set():
            if connection.lost.is_set():
                return
            await asyncio.sleep(0.01)
        for event in [*(chunk({"content": word}) for word in after), FINISH, USAGE_CHUNK, DONE]:
            await connection.send_chunk(event)
        await connection.end_stream()

    return step
