from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from rest_framework.request import Request
from rest_framework.test import APIClient, APIRequestFactory

from core.errors import ValidationError
from core.models import Project
from core.wire.pagination import MAXIMUM_OFFSET, Page, page_response, parse_page
from tests.factories.core import make_key
from tests.tables.cases import tabled

PATH = "/api/llm/keys"


def request(query: str) -> Request:
    return Request(APIRequestFactory().get(f"/rows?{query}"))


@tabled
def test_parse_page__in_range__unchanged(query: str, page: Page) -> None:
    assert parse_page(request(query)) == page


@pytest.mark.parametrize("value", ["", "0", "-1", "1001", "ten", "1.0", "1_0", "%2B5", "%205", "٣", "9" * 40])
def test_parse_page__bad_limit__named(value: str) -> None:
    with pytest.raises(ValidationError, match="limit") as caught:
        parse_page(request(f"limit={value}"))
    assert caught.value.details is not None
    assert list(caught.value.details) == ["limit"]


@pytest.mark.parametrize("value", ["", "-1", "x", "1e3", str(MAXIMUM_OFFSET + 1)])
def test_parse_page__bad_offset__named(value: str) -> None:
    with pytest.raises(ValidationError, match="offset"):
        parse_page(request(f"offset={value}"))


def test_parse_page__own_bounds__kept() -> None:
    assert parse_page(request(""), default=50, maximum=100).limit == 50
    with pytest.raises(ValidationError, match="from 1 to 100"):
        parse_page(request("limit=101"), default=50, maximum=100)


def test_page_response__middle__links_keep_the_filters() -> None:
    query_request = request("limit=10&offset=5&model=gpt-4o")

    data = page_response(query_request, parse_page(query_request), 30, [1]).data

    assert data["count"] == 30
    assert parse_qs(urlsplit(data["next"]).query) == {"limit": ["10"], "offset": ["15"], "model": ["gpt-4o"]}
    assert parse_qs(urlsplit(data["previous"]).query) == {"limit": ["10"], "offset": ["0"], "model": ["gpt-4o"]}


def test_page_response__only_page__no_links() -> None:
    data = page_response(request(""), Page(20, 0), 20, []).data
    assert (data["next"], data["previous"]) == (None, None)


def test_list__walked_by_next__every_row_once(api: APIClient, headers: dict[str, str], project: Project) -> None:
    made = {make_key(project)[0].pk for _ in range(5)}
    seen: list[int] = []
    link = f"{PATH}?limit=2"
    while link:
        body = api.get(link, headers=headers).json()
        seen += [row["id"] for row in body["results"]]
        link = body["next"]

    assert len(seen) == len(set(seen)) == 6
    assert made < set(seen)


def test_list__offset_behind_the_end__empty(api: APIClient, headers: dict[str, str]) -> None:
    body = api.get(f"{PATH}?offset={MAXIMUM_OFFSET}", headers=headers).json()
    assert (body["results"], body["count"], body["next"]) == ([], 1, None)
