from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import openai
import requests as http

from tests.live.playground import Account, make_account
from tests.live.prompts import Prompt, Rollout, Team
from tests.live.service import LiveService
from tests.waiting import wait_until

_HISTORY, _DECISION_SECONDS, _MAX_REQUESTS = 60_000, 600, 8
_VARIABLES = [{"name": "goods", "type": "string", "required": False}]
_FIRST = "You help the customers of the {{ goods }} shop.\nAnswer in one paragraph.\nName the number of the order."
_SECOND = _FIRST.replace("one paragraph", "three sentences") + "\nBe kind."
_STAGE = {"weight": 50, "min_duration_minutes": 1, "min_requests": 50}
_PROVIDERS = ("openai", "anthropic", "google")
# The teams with their budgets of a month in US dollars, and the names of their keys.
_TEAMS = {"Support": (2, ("support-chat", "mail-answers")), "Search": (0.5, ("search-indexer",))}
_MAX_SPENDING, _ORDERS = 8, "\n".join(f"{number}: one teapot, sent" for number in range(4000, 4300))
_PRICE = """
from integrations.models import ModelPrice
ModelPrice.objects.create(project_id="{project_id}", provider="sandbox", model="mirror", source="manual",
                          input_cost_per_1m="50", output_cost_per_1m="50")
"""
_CHARTS: tuple[dict[str, Any], ...] = (
    {"title": "Requests", "kind": "number", "figures": ["request_count"]},
    {"title": "Slowest twentieth", "kind": "number", "figures": ["p95_latency_ms"]},
    {"title": "Cost by model", "kind": "bars", "figures": ["total_cost_usd"], "group_by": "model"},
    {"title": "Latency", "kind": "line", "figures": ["p50_latency_ms", "p95_latency_ms"]},
    {"title": "What fails", "kind": "ranking", "figures": ["error_count"], "group_by": "error_code"},
    {
        "title": "Models",
        "kind": "table",
        "figures": ["request_count", "error_rate", "total_cost_usd"],
        "group_by": "model",
    },
)
_DAY, _QUARTER = 1440, 15
_ALERTS: tuple[dict[str, Any], ...] = (
    {
        "name": "Too many failures",
        "query": {"figure": "error_rate"},
        "condition": "above",
        "threshold": 0.001,
        "window_minutes": _DAY,
        "min_requests": 100,
    },
    {
        "name": "Slow answers",
        "query": {"figure": "p95_latency_ms"},
        "condition": "above",
        "threshold": 60_000,
        "window_minutes": _DAY,
    },
    {
        "name": "Cost of a day",
        "query": {"figure": "total_cost_usd"},
        "condition": "rises_by_percent",
        "threshold": 500,
        "window_minutes": _DAY,
    },
)


@dataclass(frozen=True, slots=True)
class Shop:
    team: Team
    prompt: Prompt
    user: Account
    colleague: Account
    dashboard_id: str

    def address(self, path: str, query: str = "") -> str:
        return f"{self.team.service.base_url}{path}?project={self.team.project_id}{query}"

    def traced_session(self) -> str:
        found = self._get("sessions", limit="120")["results"]
        sessions: list[str] = [row["session_id"] for row in found if 2 <= row["request_count"] <= _MAX_REQUESTS]
        return max(sessions, key=self._spans)

    def has_alert(self) -> bool:
        return any(alert["state"] == "firing" for alert in self._get("alerts")["results"])

    def _spans(self, session_id: str) -> int:
        nodes = self._get(f"sessions/{quote(session_id, safe='')}/timeline")["nodes"]
        return sum(1 for node in nodes if node["kind"] == "span")

    def _get(self, path: str, **parameters: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.team.api_key}", "X-Project-Id": self.team.project_id}
        url = f"{self.team.service.base_url}/api/llm/{path}"
        answer = http.get(url, headers=headers, params=parameters, timeout=30)
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body


def open_shop(service: LiveService) -> Shop:
    team = Team(service, "Corner shop")
    team.command("shell", "--verbosity", "0", "-c", _PRICE.format(project_id=team.project_id))
    # Traffic is generated for the keys that there are.
    keys = _add_teams(team)
    for provider in _PROVIDERS:
        team.call("POST", "../integrations", {"provider": provider, "api_key": "sk-of-the-pictures", "enabled": True})
    dashboard_id = _add_dashboard(team)
    team.command("generate_traffic", "--project", team.project_id, "--requests", str(_HISTORY), "--content-days", "2")
    for key in keys:
        _spend(team, key)
    access = ("--project-id", team.project_id, "--api-key", team.api_key)
    team.command("demo", "--base-url", service.base_url, *access, "--limit", "40")
    # An alert is first looked at when it is made.
    for alert in _ALERTS:
        team.call("POST", "../alerts", alert)
    content = {"model": "sandbox/echo", "variables": _VARIABLES}
    prompt = team.prompt("support", *({**content, "system_prompt": text} for text in (_FIRST, _SECOND)))
    user, colleague = make_account(team, "administrator", "ann"), make_account(team, "editor", "ben")
    return Shop(team, prompt, user, colleague, dashboard_id)


def _add_teams(team: Team) -> list[str]:
    secrets = []
    for name, (budget, keys) in _TEAMS.items():
        made = team.call("POST", "../teams", {"name": name, "monthly_budget_usd": budget})
        bodies = [{"name": key, "scopes": ["gateway"], "team_id": made["id"]} for key in keys]
        made_keys = [team.call("POST", "../keys", body)["key"] for body in bodies]
        secrets.append(made_keys[0])
    return secrets


def _spend(team: Team, key: str) -> None:
    client = openai.OpenAI(base_url=f"{team.service.base_url}/api/gateway/v1", api_key=key, max_retries=0)
    question = f"Which of these orders is late?\n{_ORDERS}"
    for _ in range(_MAX_SPENDING):
        try:
            client.chat.completions.create(
                model="sandbox/mirror", max_tokens=20, messages=[{"role": "user", "content": question}]
            )
        except openai.RateLimitError:
            return


def _add_dashboard(team: Team) -> str:
    made = team.call("POST", "../dashboards", {"name": "The shop's week", "is_shared": True})
    for chart in _CHARTS:
        team.call("POST", f"../dashboards/{made['id']}/charts", chart)
    return str(made["id"])


def decided_rollout(team: Team) -> Rollout:
    content = {"system_prompt": _FIRST, "variables": _VARIABLES}
    prompt = team.prompt("orders", {**content, "model": "sandbox/echo"}, {**content, "model": "sandbox/half"})
    rollout = prompt.rollout(mode="auto", stages=[_STAGE, {**_STAGE, "weight": 100}])

    def is_decided() -> bool:
        prompt.answers(f"Where is order {order}?" for order in range(40))
        return bool(rollout.shown()["status"] == "rolled_back")

    wait_until(is_decided, seconds=_DECISION_SECONDS, what="the rollout to be rolled back")
    return rollout
