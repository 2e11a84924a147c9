"""A driver for the agent's chat panel in the admin, and projects whose agents follow a test's script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import requests
from playwright.async_api import Locator, Page, expect

from tests.fakes.scripted import Script, ScriptedServer, Step
from tests.live.playground import Account, make_account
from tests.live.prompts import Team
from tests.live.sessions import use_session
from tests.waiting import wait_until

PATH = "/admin/agent/panel/"

_PROVIDER = """
from gateway.services import replace_settings
from integrations.access.credentials import store_secret
from integrations.models import ProviderIntegration
row = ProviderIntegration(project_id="{project_id}", provider="openai", base_url="{base_url}")
store_secret(row, "sk-scripted")
row.save()
values = dict(retry_enabled=False, agent_model="openai/agent", agent_enabled={enabled})
replace_settings(project_id="{project_id}", values=values, actor="test")
"""


@dataclass
class Office:
    team: Team
    upstream: ScriptedServer
    user: Account

    @property
    def url(self) -> str:
        return self.team.service.base_url + PATH

    def play(self, *steps: Step) -> Script:
        return self.upstream.play(self.team.project_id, *steps)

    def agent(self, method: str, path: str, **parameters: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.team.api_key}", "X-Project-Id": self.team.project_id}
        url = f"{self.team.service.base_url}/api/agent/{path}"
        return requests.request(method, url, headers=headers, params=parameters, timeout=30)

    def conversations(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.agent("GET", "conversations").json()["results"]
        return found

    def empty(self) -> None:
        for row in self.conversations():
            assert self.agent("DELETE", f"conversations/{row['conversation_id']}").status_code == 204

    def messages(self, conversation_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.agent("GET", f"conversations/{conversation_id}/messages").json()["results"]
        return found

    def wait_until_idle(self) -> None:
        wait_until(lambda: not any(row["running"] for row in self.conversations()), what="the end of every chat")


def make_office(team: Team, upstream: ScriptedServer, user: Account | None = None, *, enabled: bool = True) -> Office:
    values = {"project_id": team.project_id, "base_url": upstream.base_url(team.project_id), "enabled": enabled}
    team.command("shell", "--verbosity", "0", "-c", _PROVIDER.format(**values))
    return Office(team, upstream, user or make_account(team, "reader"))


class PanelPage:
    def __init__(self, page: Page, office: Office) -> None:
        self.page = page
        self.office = office
        self.message = page.get_by_label("Message", exact=True)
        self.send_button = page.get_by_role("button", name="Send", exact=True)
        self.stop_button = page.get_by_role("button", name="Stop", exact=True)
        self.status = page.get_by_role("status")
        self.messages = page.get_by_role("region", name="Messages")
        self.list = page.get_by_role("navigation", name="Conversations")
        self.questions = page.get_by_role("article", name="You", exact=True)
        self.answers = page.get_by_role("article", name="Agent", exact=True)

    async def sign_in(self) -> None:
        await use_session(self.page, self.office.team, self.office.user.name)

    async def open(self, query: str = "", project_id: str = "") -> None:
        await self.page.goto(self.office.url + (query or f"?project={project_id or self.office.team.project_id}"))
        await self.ready()

    async def ready(self) -> None:
        await expect(self.page.locator("#agent-root[data-ready]")).to_be_visible()

    async def choose(self, project_id: str) -> None:
        await self.open(project_id=project_id)

    async def ask(self, text: str) -> None:
        await self.message.fill(text)
        await self.message.press("Enter")

    async def done(self, ending: str = "Done") -> None:
        await expect(self.status).to_have_text(ending)
        await expect(self.send_button).to_be_enabled()

    def tool(self, name: str) -> Locator:
        return self.messages.get_by_role("group").filter(has_text=name)
