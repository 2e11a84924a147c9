"""The parameters in the OpenAPI document are exactly those that calls read, within their bounds. An empty one filters
nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any
from urllib.parse import urlencode

import pytest
from rest_framework.test import APIClient

from core.openapi.views import document
from tests.openapi.bounds import STORED, UNHELD, beyond, lines
from tests.openapi.conftest import Populated
from tests.openapi.routes import channels_paths, operations
from tests.openapi.schemas import resolved

# Clients send these parameters to every call (docs/api.md#parameters).
ANYWHERE = ("limit", "offset", "start_date", "end_date")
# OTLP has no parameters, and Channels serves what is no management call or has tests of its own.
MANAGED = [
    (method, path)
    for path, method, _ in operations()
    if path not in channels_paths() and not path.startswith("/api/otlp/")
]
_READ = [path for method, path in MANAGED if method == "get"]
# The exports are streams with tests of their own.
READING = [path for path in _READ if not path.endswith(("requests/export", "dataset_id}/export"))]


def described(method: str, path: str) -> dict[str, Any]:
    parameters = document()["paths"][path][method].get("parameters", [])
    return {item["name"]: item for item in parameters if item["in"] == "query"}


@pytest.mark.parametrize(("method", "path"), MANAGED)
def test_parameter__that_there_is_not__refused_by_name(
    caller: APIClient, populated: Populated, method: str, path: str
) -> None:
    url = f"{path.format(**populated.known)}?sesion_id=x"

    answer = caller.generic(method.upper(), url, content_type="application/json")

    assert answer.status_code == 400
    [(name, [problem])] = answer.json()["error"]["details"].items()
    assert name == "sesion_id"
    assert problem.startswith("There is no such parameter. There are: ")
    for known in described(method, path):
        assert known in problem


@pytest.mark.parametrize("path", READING)
def test_parameters__of_the_document__all_taken(caller: APIClient, populated: Populated, path: str) -> None:
    """Parameters are also taken when empty, which counts as left out, except for `limit` and `offset`."""
    url, known = path.format(**populated.known), described("get", path)
    filters = [name for name in known if name not in ("limit", "offset", "project_id")]

    plain = caller.get(url)
    empty = caller.get(f"{url}?{urlencode(dict.fromkeys(filters, ''))}")
    named = caller.get(f"{url}?project_id={populated.known['project_id']}")

    assert plain.status_code == empty.status_code == named.status_code
    if "json" in plain.headers.get("Content-Type", "") and plain.status_code == 200:
        body, other = plain.json(), empty.json()
        assert body.get("count") == other.get("count")
        assert set(body) == set(other)


@pytest.mark.parametrize("path", _READ)
def test_parameters__with_wrong_values__refused_by_name(caller: APIClient, populated: Populated, path: str) -> None:
    """Parameters that clients send to every call are refused exactly where they are read."""
    url = path.format(**populated.known)
    for name in set(ANYWHERE) - set(described("get", path)):
        assert problems(caller, url, {name: "none-at-all"}) == set(), name
    wrong = {name: list(wrong_values(item["schema"])) for name, item in described("get", path).items()}
    wrong.pop("project_id", None)  # A wrong project is reported alone, before any other problem.
    wrong.update({name: wrong[name][:1] for name in wrong.keys() & {UNHELD}})
    missed = []
    for values in zip_longest(*wrong.values()):
        query = {name: value for name, value in zip(wrong, values, strict=True) if value is not None}
        # Most calls name every problem at once, and the others are asked for each.
        for name in query.keys() - problems(caller, url, query):
            if problems(caller, url, {name: query[name]}) != {name}:
                missed.append((name, query[name]))
    assert missed == []


def problems(caller: APIClient, url: str, query: dict[str, Any]) -> set[str]:
    answer = caller.get(f"{url}?{urlencode(query)}")
    return set(answer.json()["error"].get("details", {})) if answer.status_code == 400 else set()


@pytest.mark.parametrize("path", [path for path in _READ if "end_date" in described("get", path)])
def test_range__that_ends_before_it_begins__refused_by_name(caller: APIClient, populated: Populated, path: str) -> None:
    answer = caller.get(f"{path.format(**populated.known)}?start_date=2026-11-02&end_date=2026-11-01")

    assert (answer.status_code, list(answer.json()["error"]["details"])) == (400, ["end_date"])


def wrong_values(schema: dict[str, Any]) -> Iterator[Any]:
    schema = resolved(schema)
    if schema.get("type") == "array":
        yield from wrong_values(schema["items"])
    if schema.get("type") in ("integer", "number", "boolean"):
        yield "none-at-all"
    elif schema.get("format") == "date-time":
        yield from ("yesterday", "0001-01-01", "9999-12-31T23:59:59-10:00", "2026-11-01' OR 1=1 --")
    # Clients may leave an optional parameter empty.
    yield from (value for value in beyond(schema) if value != "")
    if schema.get("type") == "string":
        yield "a\0b"


def test_bounds__all__are_those_that_were_promised() -> None:
    assert lines() == STORED.read_text().splitlines()


def test_date__that_is_none__message_says_that_a_date_alone_is_taken(caller: APIClient) -> None:
    for path, name in (("sessions", "start_date"), ("scores", "end_date"), ("metrics/overview", "start_date")):
        answer = caller.get(f"/api/llm/{path}?{name}=yesterday")

        assert answer.json()["error"]["details"] == {
            name: ["Must be a time such as 2026-11-22T08:00:00Z, or a date alone such as 2026-11-22."]
        }
        assert caller.get(f"/api/llm/{path}?{name}=2026-11-22").status_code == 200
