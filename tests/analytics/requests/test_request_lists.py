"""Lists of requests in any order, a page at a time by the cursors of their links."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.request_log.record import Outcome
from core.models import Project
from tests.analytics.requests.entries import entry
from tests.factories.analytics import store
from tests.factories.core import make_project
from tests.night import cases
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/api/llm/requests"
COUNT = 23


@pytest.fixture
def log(project: Project, spool: Path) -> None:
    """Requests of two days of which many have the same time, latency or cost, and some no cost or first token."""
    entries = []
    for number in range(COUNT):
        unpriced: dict[str, Any] = {"cost_known": False, "cost_usd": ""} if number % 5 == 0 else {}
        entries.append(
            entry(
                project,
                minutes_ago=number // 3 * 200,
                session_id=f"s{number}",
                user_id="ann" if number % 2 else "bob",
                model="small" if number % 3 else "large",
                latency_ms=100 * (number % 4),
                ttft_ms=0 if number % 6 == 0 else 10 * (number % 3 + 1),
                api_key_id=7 if number % 2 else 8,
                **{"cost_usd": f"0.00{number % 3}", **unpriced},
            )
        )
    store(spool, *entries, entry(make_project(), session_id="theirs"))


def listed(api: APIClient, **parameters: Any) -> Any:
    answer = api.get(PATH, parameters)
    assert answer.status_code == 200, answer.content
    return answer.json()


def walk(api: APIClient, url: str | None, direction: str) -> list[list[str]]:
    """Returns the sessions of each page that the links lead to."""
    pages = []
    while url is not None:
        answer = api.get(url)
        assert answer.status_code == 200, answer.content
        pages.append([item["session_id"] for item in answer.json()["results"]])
        assert answer.json()["count"] >= len(pages[-1])
        url = answer.json()[direction]
        last = answer
    walk.last = last  # type: ignore[attr-defined]  # the caller walks back from here
    return pages


def key(item: dict[str, Any], field: str) -> Any:
    value = item[field] if field != "cost_usd" else item["cost_usd"] and Decimal(str(item["cost_usd"]))
    return (value or 0, item["created_at"], item["request_id"])


@pytest.mark.usefixtures("log")
def test_list__any_order__pages_forth_and_back_have_each_request_once_in_order(api: APIClient) -> None:
    for filters, field, sign in product(
        cases([{}, {"user_id": "ann"}, {"model": "small"}, {"min_latency_ms": "100"}], by_day=[{}, {"model": "small"}]),
        ["created_at", "latency_ms", "cost_usd", "ttft_ms"],
        ["", "-"],
    ):
        everything = listed(api, limit=1000, offset=0, **filters)["results"]
        if not sign and field in ("cost_usd", "ttft_ms"):
            everything = [item for item in everything if item[field] is not None]
        expected = [
            item["session_id"] for item in sorted(everything, key=lambda item: key(item, field), reverse=bool(sign))
        ]

        first = f"{PATH}?sort={sign}{field}&limit=4&" + "&".join(f"{name}={value}" for name, value in filters.items())
        forth = walk(api, first, "next")
        last_url = walk.last.json()["previous"]  # type: ignore[attr-defined]  # set by `walk`
        back = walk(api, last_url, "previous")

        assert [name for page in forth for name in page] == expected, filters
        assert back[::-1] == forth[:-1], filters
        assert walk.last.json()["previous"] is None  # type: ignore[attr-defined]  # set by `walk`
        assert listed(api, sort=f"{sign}{field}", limit=1, **filters)["count"] == len(expected), filters


@pytest.mark.usefixtures("log")
def test_list__request_stored_between_two_pages__next_page_goes_on_where_the_last_one_ended(
    api: APIClient, project: Project, spool: Path
) -> None:
    first = listed(api, limit=5)
    store(spool, entry(project, minutes_ago=-1, session_id="new"))

    second = api.get(first["next"]).json()

    names = [item["session_id"] for item in (*first["results"], *second["results"])]
    assert len(set(names)) == 10
    assert "new" not in names


@pytest.mark.usefixtures("log")
def test_list__with_an_offset__links_have_offsets_as_before(api: APIClient) -> None:
    found = listed(api, limit=5, offset=5)

    assert "offset=10" in found["next"]
    assert "offset=0" in found["previous"]
    oldest_first = listed(api, limit=1000, offset=0, sort="created_at")["results"]
    assert oldest_first == listed(api, limit=1000, offset=0)["results"][::-1]


@tabled
def test_list__bad_value__400_names_the_field(api: APIClient, query: dict[str, str], field: str) -> None:
    answer = api.get(PATH, query)

    assert answer.status_code == 400
    assert list(answer.json()["error"]["details"]) == [field]


@pytest.mark.usefixtures("log")
def test_list__cursor_of_another_order__400_names_the_cursor(api: APIClient) -> None:
    link = listed(api, limit=5, sort="-latency_ms")["next"]

    answer = api.get(link.replace("sort=-latency_ms", "sort=latency_ms"))

    assert answer.status_code == 400
    assert list(answer.json()["error"]["details"]) == ["cursor"]
    assert api.get(f"{link}&offset=3").status_code == 400


_KEPT: list[tuple[dict[str, str], Callable[[Any], bool]]] = [
    ({"api_key_id": "7"}, lambda item: item["api_key_id"] == 7),
    ({"min_ttft_ms": "20"}, lambda item: (item["ttft_ms"] or 0) >= 20),
    ({"max_ttft_ms": "20"}, lambda item: 0 < (item["ttft_ms"] or 0) <= 20),
    ({"min_ttft_ms": "0"}, lambda item: item["ttft_ms"] is not None),
]


@pytest.mark.usefixtures("log")
def test_list__filter_by_key_and_first_token__keeps_what_matches(api: APIClient) -> None:
    everything = listed(api, limit=1000)["results"]

    for query, kept in _KEPT:
        found = listed(api, limit=1000, **query)

        assert found["results"] == [item for item in everything if kept(item)]
        assert 0 < found["count"] < COUNT, query


def test_list__page_of_a_request_that_is_gone__goes_on(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, *(entry(project, minutes_ago=i, session_id=f"s{i}", outcome=Outcome.ERROR) for i in range(3)))
    link = listed(api, limit=3)["next"]

    assert link is None
    assert listed(api, limit=2, outcome="error")["next"] is not None
    assert listed(api, limit=2, outcome="success") == {"count": 0, "next": None, "previous": None, "results": []}
