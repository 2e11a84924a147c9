from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from rest_framework.test import APIClient

from analytics.models import SavedView
from analytics.request_log.record import Outcome
from console.requests import log as request_log
from core.models import Project
from core.roles import Role
from tests.analytics.requests.entries import NOW, entry
from tests.factories.analytics import store
from tests.factories.core import make_key, make_project, make_staff
from tests.factories.prompts import make_config
from tests.factories.scores import make_score
from tests.store_away import store_away

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/analytics/requests/"
MARKUP = "<script>alert(1)</script>"


@pytest.fixture
def reader(client: Client, project: Project) -> Client:
    client.force_login(make_staff(Role.READER, project, name="reader"))
    return client


@pytest.fixture
def log(project: Project, spool: Path) -> None:
    failed: dict[str, Any] = {
        "outcome": Outcome.ERROR,
        "status_code": 429,
        "error_type": "rate_limit_error",
        "error_code": "requests_per_minute",
        "error_message": f"Too many {MARKUP}",
        "cost_known": False,
        "cost_usd": "",
        "prompt_tokens": 0,
        "completion_tokens": 0,
    }
    store(
        spool,
        entry(project, MARKUP, minutes_ago=10, session_id="s<1>", user_id="ann", model="small", latency_ms=120),
        entry(project, minutes_ago=20, session_id="s2", user_id="ann", model="large", latency_ms=9_300, ttft_ms=450),
        entry(project, minutes_ago=30, user_id="bob", model="large", latency_ms=3, **failed),
        entry(project, minutes_ago=60 * 24 * 3, user_id="carl", model="old"),
        entry(make_project(), minutes_ago=10, user_id="theirs", model="theirs"),
    )


def content_of(answer: Any) -> str:
    assert answer.status_code == 200, answer.status_code
    text = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return str(text.decode())


def shown(client: Client, project: Project, **query: Any) -> str:
    return content_of(client.get(PATH, {"project": str(project.pk), **query}))


def models(text: str) -> list[str]:
    return re.findall(r'<td data-label="Model">(\w+)</td>', text)


@pytest.mark.usefixtures("log")
def test_log__requests_of_the_range__newest_first_with_reason_and_cost(reader: Client, project: Project) -> None:
    text = shown(reader, project)

    assert models(text) == ["small", "large", "large"]
    assert "requests_per_minute" in text
    assert '<td data-label="Cost" class="number">$0</td>' in text
    assert "9.3 s" in text
    assert "theirs" not in text
    assert MARKUP not in text
    assert "&lt;script&gt;alert" in text
    assert models(shown(reader, project, range="7d")) == ["small", "large", "large", "old"]


_FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"user_id": "ann"}, ["small", "large"]),
    ({"outcome": "error"}, ["large"]),
    ({"min_latency_ms": "5000"}, ["large"]),
    ({"min_ttft_ms": "1"}, ["large"]),
    ({"error_code": "requests_per_minute"}, ["large"]),
    ({"sort": "-latency_ms"}, ["large", "small", "large"]),
    ({"sort": "created_at"}, ["large", "large", "small"]),
    ({"session_id": "s2"}, ["large"]),
    ({"user_id": ""}, ["small", "large", "large"]),
    ({"user_id": ["ann", "bob"], "outcome": "success"}, ["small", "large"]),
    ({"not_model": "small"}, ["large", "large"]),
    ({"not_user_id": ["ann", "x"], "not_outcome": "success"}, ["large"]),
]


@pytest.mark.usefixtures("log")
def test_log__filters_and_order__as_in_the_api(reader: Client, api: APIClient, project: Project) -> None:
    for query, expected in _FILTERS:
        text = shown(reader, project, **query)

        bounds = {"start_date": (NOW - timedelta(days=1)).isoformat()}
        answer = api.get("/api/llm/requests", {**query, **bounds}).json()
        assert models(text) == expected == [item["model"] for item in answer["results"]], query
        assert f"{answer['count']} in all" in text, query


@pytest.mark.usefixtures("log")
def test_log__histogram_and_facets__figures_of_the_api(reader: Client, api: APIClient, project: Project) -> None:
    text = shown(reader, project)

    bounds = {"start_date": (NOW - timedelta(days=1)).isoformat(), "end_date": NOW.isoformat()}
    histogram = api.get("/api/llm/requests/histogram", bounds).json()
    facets = {item["name"]: item["values"] for item in api.get("/api/llm/requests/facets", bounds).json()["facets"]}
    assert f"<strong>{histogram['request_count']}</strong> requests" in text
    assert f"{histogram['error_count']} failed" in text
    for value in (*facets["user_id"], *facets["model"]):
        excluded = rf'<a class="not"[^>]*>not<span class="sr"> {value["value"]}</span></a>'
        assert re.search(rf'>{value["value"]}</a>{excluded}<span class="muted">{value["request_count"]}<', text)


def test_log__prompts_and_rollouts__by_their_names(reader: Client, project: Project, spool: Path) -> None:
    configs = [make_config(project, name=name) for name in ("welcome <mail>", "refunds")]
    store(spool, *(entry(project, prompt_config_id=str(one.pk), prompt_version=1) for one in configs))
    gone = uuid4()

    text = shown(reader, project, prompt_config_id=str(configs[0].pk))
    assert _chips(text) == ["Prompt is welcome &lt;mail&gt;, remove"]
    facets = shown(reader, project)
    assert ">welcome &lt;mail&gt;</a>" in facets and ">refunds</a>" in facets
    assert _chips(shown(reader, project, prompt_config_id=str(gone))) == [f"Prompt is {gone}, remove"]


def _chips(text: str) -> list[str]:
    found = re.findall(r'<a class="chip" [^>]*>(.*?)</a>', text)
    return [" ".join(re.sub(r"<[^>]+>", "", chip).split()) for chip in found]


_BAD = [
    ({"user": "ann"}, "user: There is no such filter."),
    ({"outcome": "nonsense"}, "outcome: "),
    ({"min_latency_ms": "slow"}, "min_latency_ms: "),
    ({"sort": "price"}, "sort: "),
    ({"cursor": "x"}, "cursor: "),
    ({"<b>": "1"}, "&lt;b&gt;: There is no such filter."),
]


@pytest.mark.usefixtures("log")
def test_log__unknown_or_bad_parameter__said_and_nothing_listed(reader: Client, project: Project) -> None:
    for query, problem in _BAD:
        text = shown(reader, project, **query)

        assert problem in text, query
        assert models(text) == [], query
        assert "No request" not in text, query


@pytest.mark.parametrize(
    ("query", "kept"),
    [({"session": "s 1", "p": "2"}, "session_id=s+1"), ({"outcome": "error", "p": "3"}, "outcome=error")],
)
def test_log__address_from_before__leads_to_the_same_list(
    reader: Client, project: Project, query: dict[str, str], kept: str
) -> None:
    answer = reader.get(PATH, {"project": str(project.pk), **query})

    assert answer.status_code == 302
    assert kept in answer.headers["Location"]
    assert "p=" not in answer.headers["Location"].replace("project=", "")


def test_log__many__pages_forth_and_back(
    reader: Client, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "LIMIT", 3)
    store(spool, *(entry(project, minutes_ago=1 + i, model=f"m{i}") for i in range(7)))

    first = shown(reader, project)
    second = content_of(reader.get(_link(first, "next")))
    third = content_of(reader.get(_link(second, "next")))

    assert [models(first), models(second), models(third)] == [["m0", "m1", "m2"], ["m3", "m4", "m5"], ["m6"]]
    assert models(content_of(reader.get(_link(third, "prev")))) == ["m3", "m4", "m5"]
    assert 'rel="next"' not in third


def _link(text: str, rel: str) -> str:
    found = re.search(rf'rel="{rel}" href="([^"]+)"', text)
    assert found
    return PATH + found[1].replace("&amp;", "&")


@pytest.mark.usefixtures("log")
def test_log__chosen_columns__those_alone(reader: Client, project: Project) -> None:
    text = shown(reader, project, columns="time,user,prompt_preview")

    assert "&lt;script&gt;alert(1)" in text
    assert 'data-label="Model"' not in text


@pytest.mark.usefixtures("log")
def test_log__scores_of_a_request__in_its_row(reader: Client, project: Project, api: APIClient) -> None:
    request_id = api.get("/api/llm/requests").json()["results"][0]["request_id"]
    make_score(project, request_id=request_id, score_name="relevance", score_value=80)

    assert "relevance 80" in shown(reader, project, columns="time,scores")


@pytest.mark.usefixtures("log")
def test_log__reader_without_content__sees_no_texts(client: Client, project: Project) -> None:
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, project))

    text = shown(client, project, columns="time,outcome,prompt_preview,completion_preview")

    assert "requests_per_minute" in text
    assert "Too many" not in text
    assert "alert(1)" not in text
    assert "Export" not in text
    assert client.get(f"{PATH}export/", {"project": str(project.pk)}).status_code == 403


@pytest.mark.usefixtures("log")
def test_log__export__has_the_rows_of_the_filter(reader: Client, project: Project) -> None:
    query = {"project": str(project.pk), "user_id": "ann"}

    lines = content_of_async(reader.get(f"{PATH}export/", query)).splitlines()
    table = content_of_async(reader.get(f"{PATH}export/", {**query, "format": "csv"})).splitlines()

    assert [json.loads(line)["model"] for line in lines] == ["large", "small"]
    assert table[0].startswith("request_id,created_at,session_id")
    assert len(table) == 3
    assert reader.get(f"{PATH}export/", {**query, "user": "x"}).status_code == 400


def content_of_async(answer: Any) -> str:
    from asgiref.sync import async_to_sync

    async def collect() -> bytes:
        return b"".join([piece async for piece in answer])

    assert answer.status_code == 200
    return async_to_sync(collect)().decode()


@pytest.mark.usefixtures("log")
def test_log__view_saved_and_deleted__offered_to_its_owner(reader: Client, project: Project) -> None:
    address = f"{PATH}?project={project.pk}&range=24h&min_latency_ms=5000"

    saved = reader.post(address, {"action": "save_view", "name": "slow <b>", "query": "range=24h&min_latency_ms=5000"})

    assert (saved.status_code, saved.headers["Location"]) == (302, address)
    text = shown(reader, project)
    assert "slow &lt;b&gt;" in text
    assert "min_latency_ms=5000" in text
    other = Client()
    other.force_login(make_staff(Role.ADMINISTRATOR, project, name="other"))
    assert "slow &lt;b&gt;" not in shown(other, project)
    view = SavedView.objects.get()
    other.post(address, {"action": "delete_view", "view": str(view.pk)})
    assert SavedView.objects.exists()
    reader.post(address, {"action": "save_view", "name": "", "query": ""})
    assert "The view is not saved" in shown(reader, project)
    reader.post(address, {"action": "delete_view", "view": str(view.pk)})
    assert not SavedView.objects.exists()


@pytest.mark.usefixtures("log")
def test_log__several_values_and_not__each_a_chip_that_takes_itself_away(reader: Client, project: Project) -> None:
    text = shown(reader, project, user_id=["ann", "bob"], not_model="small", columns="time,model")

    assert _chips(text) == ["Model is not small, remove", "User is ann, remove", "User is bob, remove"]
    without_ann = re.findall(r'<a class="chip" href="([^"]+)"', text)[1].replace("&amp;", "&")
    assert "user_id=bob" in without_ann and "ann" not in without_ann and "not_model=small" in without_ann
    # The form of the further filters, that of the columns and the three of the range keep all of them.
    assert text.count('name="user_id" value="ann"') == text.count('name="user_id" value="bob"') == 5
    # A value beside the chosen ones can still be added.
    assert re.search(r'<a class="box out"[^>]*>small</a>', text)


def test_log__keys_and_metadata__by_their_names_with_counts(reader: Client, project: Project, spool: Path) -> None:
    key = make_key(project, name="shop <1>")[0]
    team = {"metadata.team": "search <b>", "metadata.stage": "live"}
    store(
        spool, entry(project, minutes_ago=5, api_key_id=key.pk, attributes=team, model="m1"), entry(project, model="m2")
    )

    text = shown(reader, project)

    assert ">shop &lt;1&gt;</a>" in text
    assert ">Metadata: team<" in text and ">Metadata: stage<" in text
    assert ">search &lt;b&gt;</a>" in text
    assert models(shown(reader, project, metadata="team:search <b>")) == ["m1"]
    assert models(shown(reader, project, not_metadata="team:search <b>")) == ["m2"]
    assert _chips(shown(reader, project, api_key_id=str(key.pk))) == ["API key is shop &lt;1&gt;, remove"]


def test_log__answers_with_faults__found_by_signal(reader: Client, project: Project, spool: Path) -> None:
    store(
        spool,
        entry(project, minutes_ago=5, model="broke", contract_violation=True),
        entry(project, minutes_ago=6, model="cut", finish_reason="length"),
        entry(project, minutes_ago=7, model="other", other_used=True),
        entry(project, minutes_ago=8, model="empty", empty_answer=True),
        entry(project, minutes_ago=9, model="failed", contract_violation=True, outcome=Outcome.ERROR),
    )

    assert models(shown(reader, project, signal="contract")) == ["broke"]
    assert models(shown(reader, project, signal=["truncated", "fallback"])) == ["cut", "other"]
    assert models(shown(reader, project, not_signal=["truncated", "fallback", "contract"])) == ["empty", "failed"]
    assert "broke its contract" in shown(reader, project)


def ids(api: APIClient) -> list[str]:
    return [item["request_id"] for item in api.get("/api/llm/requests").json()["results"]]


@pytest.mark.usefixtures("log")
def test_peek__request_of_the_address__beside_the_list_without_scripts(
    reader: Client, project: Project, api: APIClient
) -> None:
    request_id = ids(api)[0]
    rows = re.findall(r'class="row-link" href="([^"]+)"', shown(reader, project, model="small"))

    text = content_of(reader.get(PATH + rows[0].replace("&amp;", "&")))

    assert f"peek={request_id}" in rows[0] and "model=small" in rows[0]
    assert models(text) == ["small"]
    assert 'tr aria-current="true"' in text
    assert f'href="/admin/analytics/requests/{project.pk}/{request_id}/' in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text and MARKUP not in text
    assert "an answer" in text
    alone = shown(reader, project, panel="peek", peek=request_id)
    assert "an answer" in alone and "<html" not in alone


@pytest.mark.usefixtures("log")
def test_peek__reader_without_content__neither_texts_nor_inputs(
    client: Client, project: Project, api: APIClient
) -> None:
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, project))

    text = shown(client, project, peek=ids(api)[0])

    assert "does not show what was asked" in text
    assert "alert(1)" not in text and "an answer" not in text


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("chosen", ["019aa000-0000-7000-8000-000000000001", "<b>"])
def test_peek__erased_or_unknown_request__said_in_place(reader: Client, project: Project, chosen: str) -> None:
    text = shown(reader, project, peek=chosen)

    assert "This request is not in the log any more" in text
    assert "Not available" not in text
    assert models(text) == ["small", "large", "large"]


def test_log__nothing__leads_on(reader: Client, project: Project) -> None:
    assert "Last 30 days" in shown(reader, project)
    assert "Clear the filters" in shown(reader, project, user_id="ann")


def test_log__store_away__message_and_frame(reader: Client, project: Project) -> None:
    with store_away():
        text = shown(reader, project)

    assert text.count("The analytics store does not answer.") == 3
    assert "No requests" not in text
    assert "Saved views" in text
