"""Dashboards over HTTP: who sees and changes them, what their charts answer, and how many there may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from analytics.dashboards import services
from analytics.models import Chart
from core.models import Project
from core.roles import Role
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_staff
from tests.factories.prompts import make_config
from tests.rights.conftest import signed_in
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

PATH = "/api/llm/dashboards"
ERRORS = {"title": "Errors", "kind": "line", "figures": ["error_count"]}


class Member:
    """A person of the project who calls the API."""

    def __init__(self, role: Role, project: Project, name: str) -> None:
        self.client: Client = signed_in(make_staff(role, project, name=name))
        self._project = project

    def ask(self, method: str, path: str = PATH, body: Any = None, expected: int = 200) -> Any:
        answer = self.client.generic(
            method, path, json.dumps(body or {}), "application/json", headers={"X-Project-Id": str(self._project.pk)}
        )
        assert answer.status_code == expected, answer.content
        return answer.json() if answer.content else None

    def make(self, name: str = "team", **more: Any) -> str:
        return str(self.ask("POST", PATH, {"name": name, **more}, 201)["id"])

    def add(self, dashboard: str, **chart: Any) -> str:
        return str(self.ask("POST", f"{PATH}/{dashboard}/charts", {**ERRORS, **chart}, 201)["id"])

    def names(self) -> list[str]:
        return [row["name"] for row in self.ask("GET")["results"]]


@pytest.fixture
def ann(project: Project) -> Member:
    return Member(Role.READER_WITHOUT_CONTENT, project, "ann")


@pytest.fixture
def bob(project: Project) -> Member:
    return Member(Role.READER, project, "bob")


def test_dashboard__not_shared__is_there_for_its_owner_alone(project: Project, ann: Member) -> None:
    root = Member(Role.ADMINISTRATOR, project, "root")
    mine = ann.make()

    assert (ann.names(), root.names()) == (["team"], [])
    for method in ("GET", "PATCH", "DELETE"):
        root.ask(method, f"{PATH}/{mine}", {"name": "x"}, 404)
    root.ask("POST", f"{PATH}/{mine}/charts", ERRORS, 404)
    ann.ask("DELETE", f"{PATH}/{mine}", expected=204)
    assert ann.names() == []


def test_dashboard__shared__seen_by_all_and_changed_by_owner_and_editors(
    project: Project, ann: Member, bob: Member
) -> None:
    editor = Member(Role.EDITOR, project, "eve")
    shared = ann.make(is_shared=True)
    chart = f"{PATH}/{shared}/charts/{ann.add(shared)}"

    assert bob.ask("GET", f"{PATH}/{shared}")["charts"][0]["title"] == "Errors"
    for method, path in (("PATCH", f"{PATH}/{shared}"), ("DELETE", f"{PATH}/{shared}"), ("DELETE", chart)):
        refused = bob.ask(method, path, {"name": "x"} if path.endswith(shared) else {"title": "x"}, 403)
        assert refused["error"]["code"] == "dashboard_not_owned"
    bob.ask("PATCH", chart, {"title": "x"}, 403)
    assert editor.ask("PATCH", chart, {"title": "Failures"})["title"] == "Failures"
    assert editor.ask("PATCH", f"{PATH}/{shared}", {"name": "ours"})["name"] == "ours"
    ann.ask("PATCH", f"{PATH}/{shared}", {"is_shared": False})
    editor.ask("GET", f"{PATH}/{shared}", expected=404)


def test_dashboard__of_a_name_that_the_owner_has__is_a_conflict(ann: Member, bob: Member) -> None:
    ann.make("team", is_shared=True)
    other = ann.make("other")

    refused = ann.ask("POST", PATH, {"name": "team"}, 409)
    assert (refused["error"]["code"], list(refused["error"]["details"])) == ("dashboard_exists", ["name"])
    ann.ask("PATCH", f"{PATH}/{other}", {"name": "team"}, 409)
    bob.make("team")


def test_dashboards_and_charts__more_than_there_may_be__are_refused(
    ann: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MAX_DASHBOARDS", 2)
    full = ann.make("first")
    ann.make("second")
    assert ann.ask("POST", PATH, {"name": "third"}, 409)["error"]["code"] == "too_many_dashboards"

    for _ in range(services.MAX_CHARTS):
        ann.add(full)
    refused = ann.ask("POST", f"{PATH}/{full}/charts", ERRORS, 409)
    assert refused["error"]["code"] == "too_many_charts"


def test_charts__moved_and_removed__stand_without_gaps(ann: Member) -> None:
    board = ann.make()
    ids = {title: ann.add(board, title=title) for title in "abcd"}

    def order() -> list[tuple[int, str]]:
        return [(one["position"], one["title"]) for one in ann.ask("GET", f"{PATH}/{board}")["charts"]]

    ann.ask("PATCH", f"{PATH}/{board}/charts/{ids['d']}", {"position": 1})
    assert order() == [(0, "a"), (1, "d"), (2, "b"), (3, "c")]
    ann.ask("PATCH", f"{PATH}/{board}/charts/{ids['a']}", {"position": 99, "is_wide": True})
    assert order() == [(0, "d"), (1, "b"), (2, "c"), (3, "a")]
    ann.ask("DELETE", f"{PATH}/{board}/charts/{ids['b']}", expected=204)
    assert order() == [(0, "d"), (1, "c"), (2, "a")]
    ann.ask("PATCH", f"{PATH}/{board}/charts/{uuid4()}", {"position": 0}, 404)


@tabled
def test_chart__that_cannot_be_shown__is_refused_by_name(ann: Member, chart: dict[str, Any], field: str) -> None:
    board = ann.make()

    refused = ann.ask("POST", f"{PATH}/{board}/charts", {**ERRORS, **chart}, 400)
    kept = ann.add(board)
    again = ann.ask("PATCH", f"{PATH}/{board}/charts/{kept}", chart, 400)

    assert list(refused["error"]["details"]) == list(again["error"]["details"]) == [field]


@pytest.mark.usefixtures("clickhouse")
def test_chart_data__of_each_kind__has_the_values(ann: Member, project: Project, spool: Path) -> None:
    key = make_key(project)[0]
    of_key = [make_entry(project_id=str(project.pk), api_key_id=key.pk, model="a", cost_usd="0.5") for _ in range(3)]
    others = [make_entry(project_id=str(project.pk), model="b", outcome="error", cost_usd="2") for _ in range(2)]
    store(spool, *of_key, *others)
    board = ann.make()

    def data(**chart: Any) -> Any:
        return ann.ask("GET", f"{PATH}/{board}/charts/{ann.add(board, **chart)}/data")

    line = data(figures=["request_count", "error_count"])
    assert [(one["figure"], sum(one["values"])) for one in line["series"]] == [("request_count", 5), ("error_count", 2)]
    assert len(line["starts"]) == len(line["series"][0]["values"]) > 1
    by_key = data(kind="bars", figures=["total_cost_usd"], group_by="api_key")
    assert {one["name"]: sum(one["values"]) for one in by_key["series"]} == {"": 4, key.name: 1.5}
    ranking = data(kind="ranking", figures=["total_cost_usd"], group_by="model")
    assert [(row["key"], row["values"]) for row in ranking["rows"]] == [("b", [4]), ("a", [1.5])]
    number = data(kind="number", figures=["error_rate"])
    assert (number["rows"][0]["values"], number["previous"]) == ([0.4], [None])
    table = data(kind="table", figures=["request_count", "error_rate"], group_by="model", filters={"model": "a"})
    assert [(row["name"], row["values"]) for row in table["rows"]] == [("a", [3, 0])]
    filtered = data(kind="number", figures=["request_count"], filters={"api_key_id": str(key.pk)})
    assert filtered["rows"][0]["values"] == [3]
    either = data(kind="number", figures=["request_count"], filters={"model": ["a", "b"], "user_id": ""})
    without = data(kind="number", figures=["request_count"], filters={"not_model": ["b"]})
    assert (either["rows"][0]["values"], without["rows"][0]["values"]) == ([5], [3])


@pytest.mark.usefixtures("clickhouse")
def test_chart_data__of_what_is_not_there_any_more__is_refused_by_name(ann: Member, project: Project) -> None:
    board, key, prompt = ann.make(), make_key(project)[0], make_config(project)
    by_key = ann.add(board, filters={"api_key_id": str(key.pk)})
    by_prompt = ann.add(board, filters={"prompt_config_id": str(prompt.pk)})
    by_figure, whole = ann.add(board), ann.add(board)
    Chart.objects.filter(pk=by_figure).update(figures=["guesses"])
    key.delete()
    prompt.delete()

    def details(chart: str) -> list[str]:
        refused = ann.ask("GET", f"{PATH}/{board}/charts/{chart}/data", expected=400)
        return list(refused["error"]["details"])

    assert details(by_key) == ["filters.api_key_id"]
    assert details(by_prompt) == ["filters.prompt_config_id"]
    assert details(by_figure) == ["figures"]
    ann.ask("GET", f"{PATH}/{board}/charts/{whole}/data")
    # A chart without its figure is still renamed, moved and removed.
    assert ann.ask("PATCH", f"{PATH}/{board}/charts/{by_figure}", {"title": "Gone", "position": 0})["title"] == "Gone"
    ann.ask("DELETE", f"{PATH}/{board}/charts/{by_figure}", expected=204)


def test_figures__listed__with_units_groups_and_filters(ann: Member) -> None:
    found = {one["name"]: one for one in ann.ask("GET", "/api/llm/figures?limit=100")["results"]}

    assert found["p95_latency_ms"]["unit"] == "ms"
    assert {"model", "api_key", "error_code", "metadata"} <= set(found["error_rate"]["groups"])
    assert "api_key_id" in found["error_rate"]["filters"]
    assert "score_name" in found["mean_score"]["filters"]
