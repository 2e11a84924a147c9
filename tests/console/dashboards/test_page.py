from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from analytics.models import Chart, Dashboard
from core.models import Project
from core.roles import Role
from tests.console.pages import shown, text_of
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_staff
from tests.factories.dashboards import make_dashboard
from tests.factories.prompts import make_config
from tests.rights.conftest import signed_in
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/dashboards/"
FORM = f"{PATH}chart/"
COUNT = {"title": "Requests", "kind": "number", "figures": ["request_count"]}


@pytest.fixture
def ann(project: Project) -> Client:
    return signed_in(make_staff(Role.READER_WITHOUT_CONTENT, project, name="ann"))


def links_to_keep(text: str) -> dict[str, str]:
    found = re.findall(r'<a [^>]*href="([^"]+)"[^>]*>Keep as chart<span class="sr">: ([^<]*)</span>', text)
    return {unescape(name): unescape(href) for href, name in found}


def fields_of(text: str) -> dict[str, Any]:
    form = text.partition("<form method")[2] if "What it shows" in text else ""
    inputs = dict(re.findall(r'<input type="text" name="(\w+)" value="([^"]*)"', form))
    chosen = {
        name: re.findall(r'<option value="([^"]*)" selected', options)[-1:]
        for name, options in re.findall(r'<select name="(\w+)".*?>(.*?)</select>', form, re.S)
    }
    figures = re.findall(r'<input type="checkbox" name="figures" value="(\w+)"[^>]* checked', form)
    lines = re.findall(r"<textarea[^>]*>\s*(.*?)</textarea>", form, re.S)
    fields = {**inputs, **{name: values[0] for name, values in chosen.items() if values}, "figures": figures}
    return {name: unescape(value) if isinstance(value, str) else value for name, value in fields.items()} | {
        "filters": unescape(lines[0]) if lines else ""
    }


def keep(client: Client, address: str, **changes: Any) -> Any:
    fields = fields_of(text_of(client.get(address)))
    return client.post(address, {"dashboard_name": "My dashboard", **fields, **changes})


def served(spool: Path, project: Project, count: int = 3, **values: Any) -> None:
    store(spool, *(make_entry(project_id=str(project.pk), **values) for _ in range(count)))


def test_keep_as_chart__from_home__is_on_a_new_dashboard(ann: Client, project: Project, spool: Path) -> None:
    served(spool, project, model="gpt-test", cost_usd="0.5")
    links = links_to_keep(shown(ann, "/admin/", project))
    assert {"Latency", "Cost per hour", "The models that cost most"} <= set(links)

    kept = keep(ann, next(href for name, href in links.items() if name.startswith("Requests and errors")))
    [row] = Dashboard.objects.all()
    again = keep(ann, links["The models that cost most"])

    assert (kept.status_code, again.status_code) == (302, 302), fields_of(text_of(kept))
    assert (row.owner, row.name, row.is_shared) == ("user:ann", "My dashboard", False)
    assert list(row.charts.values_list("title", "kind")) == [("Requests and errors", "line"), ("Top models", "table")]
    text = text_of(ann.get(kept["location"]))
    assert "gpt-test" in text
    assert "$1.50" in text


@tabled
def test_keep_as_chart__from_each_page__keeps_its_question(
    project: Project, spool: Path, path: str, query: dict[str, str], figures: list[str], group_by: str
) -> None:
    admin = signed_in(make_staff(Role.ADMINISTRATOR, project, name="root"))
    config = make_config(project, versions=1)
    failed: dict[str, Any] = {
        "outcome": "error",
        "error_code": "timeout",
        "error_type": "api_error",
        "status_code": 502,
    }
    served(
        spool, project, model="gpt-test", provider="openai", prompt_config_id=str(config.pk), prompt_version=1, **failed
    )

    links = links_to_keep(shown(admin, path, project, **query))
    for address in links.values():
        assert keep(admin, address).status_code == 302, address

    kept = {(tuple(sorted(chart.figures)), chart.group_by): chart for chart in Chart.objects.all()}
    chart = kept[tuple(sorted(figures)), group_by]
    assert chart.filters == {name: value for name, value in query.items() if name != "group_by"}
    text = shown(admin, f"{PATH}{chart.dashboard_id}/", project)
    assert "cannot be shown" not in text
    assert "Not available" not in text


def test_dashboard__with_a_chart_of_each_kind__shows_values_and_names(
    ann: Client, project: Project, spool: Path
) -> None:
    key, config = make_key(project)[0], make_config(project, "greeter", versions=1)
    served(spool, project, 4, api_key_id=key.pk, cost_usd="0.25", prompt_config_id=str(config.pk), prompt_version=1)
    by_key = {"title": "Keys", "kind": "ranking", "figures": ["total_cost_usd"], "group_by": "api_key"}
    by_prompt = {"title": "Prompts", "kind": "bars", "figures": ["request_count"], "group_by": "prompt_version"}
    filtered = {**COUNT, "filters": {"api_key_id": str(key.pk), "prompt_config_id": str(config.pk)}}
    row = make_dashboard(project, "Named", [by_key, by_prompt, filtered])

    text = unescape(shown(ann, f"{PATH}{row.pk}/", project))
    everything = shown(ann, f"{PATH}{make_dashboard(project).pk}/", project)

    assert key.name in text
    assert "greeter, version 1" in text
    assert f"API key: {key.name}, prompt: greeter" in text
    assert "<strong>4</strong>" in text
    assert "cannot be shown" not in everything
    assert everything.count('class="plot-values"') == 2
    assert 'action="' not in text.partition("<main")[2]


def test_dashboard__of_things_that_are_not_there_any_more__says_so_and_shows_the_rest(
    ann: Client, project: Project, spool: Path
) -> None:
    served(spool, project, 7)
    key, config = make_key(project)[0], make_config(project, versions=1)
    charts: list[dict[str, Any]] = [
        {**COUNT, "filters": {"api_key_id": str(key.pk)}},
        {**COUNT, "filters": {"prompt_config_id": str(config.pk)}},
        {**COUNT, "figures": ["guesses"]},
        {**COUNT, "filters": {"weather": "rain"}},
        {"title": "Model", "kind": "line", "figures": ["request_count"], "filters": {"model": "gone"}},
        COUNT,
    ]
    row = make_dashboard(project, charts=charts, owner="user:ann")
    key.delete()
    config.delete()

    text = unescape(shown(ann, f"{PATH}{row.pk}/", project))

    for sentence in (
        "The API key of this chart is not there any more.",
        "The prompt of this chart is not there any more.",
        "There is no figure 'guesses'.",
        "There is no such filter.",
        "No requests of model: gone in this range.",
        "<strong>7</strong>",
    ):
        assert sentence in text, sentence
    broken = row.charts.get(figures=["guesses"])
    ann.post(f"{PATH}{row.pk}/", {"action": "remove", "chart": str(broken.pk)})
    assert not row.charts.filter(pk=broken.pk).exists()


def test_dashboard__arranged_without_scripts__keeps_order_and_size(ann: Client, project: Project) -> None:
    row = make_dashboard(project, charts=[{**COUNT, "title": title} for title in "abc"], owner="user:ann")

    def press(action: str, title: str) -> list[tuple[str, bool]]:
        chart = row.charts.get(title=title)
        answer = ann.post(f"{PATH}{row.pk}/?project={project.pk}", {"action": action, "chart": str(chart.pk)})
        assert answer.status_code == 302
        return list(row.charts.values_list("title", "is_wide"))

    assert press("earlier", "c") == [("a", False), ("c", False), ("b", False)]
    assert press("later", "a") == [("c", False), ("a", False), ("b", False)]
    assert press("earlier", "c")[0] == ("c", False)
    assert press("wide", "c")[0] == ("c", True)
    assert press("narrow", "c")[0] == ("c", False)
    assert [title for title, _ in press("remove", "a")] == ["c", "b"]


def test_dashboard__shared__is_read_and_not_changed_by_readers(ann: Client, project: Project) -> None:
    bob = signed_in(make_staff(Role.READER, project, name="bob"))
    row = make_dashboard(project, charts=[COUNT], owner="user:ann", is_shared=False)
    address = f"{PATH}{row.pk}/"
    assert bob.get(address).status_code == 404
    assert row.name not in shown(bob, PATH, project)

    ann.post(address, {"action": "save", "name": "For all", "is_shared": "on"})

    text = shown(bob, address, project)
    assert "Made by ann, seen by everybody in the project." in text
    assert f"http://testserver{address}" in text
    assert "Arrange" not in text
    assert "For all" in shown(bob, PATH, project)
    for action in ("save", "delete", "remove"):
        bob.post(address, {"action": action, "name": "x", "chart": str(row.charts.get().pk)})
    row.refresh_from_db()
    assert (row.name, row.charts.count()) == ("For all", 1)
    ann.post(address, {"action": "delete"})
    assert not Dashboard.objects.exists()


@tabled
def test_form__that_cannot_be_kept__says_why_and_makes_nothing(
    ann: Client, project: Project, changes: dict[str, Any], problem: str
) -> None:
    fields = {**COUNT, "dashboard_name": "New", **changes}

    text = unescape(text_of(ann.post(f"{FORM}?project={project.pk}", fields)))

    assert problem in text
    assert not Chart.objects.exists()
    assert not Dashboard.objects.exists()


@pytest.mark.parametrize("kept", ["{", "[]", '{"figures": 3, "filters": 4, "kind": {}}', '{"filters": {"a": {}}}'])
def test_form__of_an_address_that_was_mangled__opens(ann: Client, project: Project, kept: str) -> None:
    assert "What it shows" in shown(ann, FORM, project, keep=kept)
    for name in ("chart", "dashboard"):
        assert ann.get(FORM, {"project": str(project.pk), name: "x"}).status_code == (404 if name == "chart" else 200)


def test_form__of_a_chart__changes_it(ann: Client, project: Project) -> None:
    row = make_dashboard(project, charts=[{**COUNT, "filters": {"model": "a"}}], owner="user:ann")
    chart = row.charts.get()
    address = f"{FORM}?project={project.pk}&chart={chart.pk}"

    answer = ann.post(address, {**fields_of(text_of(ann.get(address))), "title": "Renamed", "filters": "model=b"})

    chart.refresh_from_db()
    assert answer.status_code == 302
    assert (chart.title, chart.filters, chart.kind) == ("Renamed", {"model": "b"}, "number")
    bob = signed_in(make_staff(Role.READER, project, name="bob"))
    bob.post(address, {**COUNT, "title": "Mine"})
    chart.refresh_from_db()
    assert chart.title == "Renamed"


def test_list__new_dashboard__is_made_and_a_name_twice_refused(ann: Client, project: Project) -> None:
    made = ann.post(f"{PATH}?project={project.pk}", {"name": "Team"})
    twice = ann.post(f"{PATH}?project={project.pk}", {"name": "Team"})

    assert made.status_code == 302
    assert "There is no chart here yet" in text_of(ann.get(made["location"]))
    assert "You have a dashboard called Team already." in unescape(text_of(twice))
