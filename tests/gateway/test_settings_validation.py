"""`PUT /api/llm/settings`: the bounds of each setting, and bodies that are not valid."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from pytest_django import Settings
from rest_framework.test import APIClient

from core.caller_limits import MAX_BUDGET_USD
from gateway.project_settings.declaration import Kind, Setting
from tests.gateway.settings_objects import DEFAULTS, FULL, GUARDRAILS, PATH, SETTINGS, without_warnings
from tests.night import examples
from tests.tables.cases import tabled

NUMBERS: list[tuple[str, Any, Any]] = [
    (one.name, one.minimum or 0, MAX_BUDGET_USD if one.kind is Kind.MONEY else one.maximum)
    for one in SETTINGS
    if one.kind in (Kind.INTEGER, Kind.NUMBER, Kind.MONEY)
]


@pytest.mark.parametrize(("name", "min_value", "max_value"), NUMBERS)
def test_number__at_its_bounds_and_beyond(api: APIClient, name: str, min_value: int, max_value: int) -> None:
    for value in (min_value, max_value):
        assert api.put(PATH, {name: value}).json()[name] == value
    for value in (min_value - 1, max_value + 1, 2**70, -(2**70)):
        refused(api, {name: value}, name)


@tabled
def test_value__that_is_none__is_refused_by_name_and_changes_nothing(
    api: APIClient, body: dict[str, Any], field: str
) -> None:
    api.put(PATH, FULL)
    refused(api, body, field)
    assert without_warnings(api.get(PATH).json()) == FULL


@tabled
def test_webhook__that_no_channel_may_have__is_refused(api: APIClient, settings: Settings, url: str) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False

    refused(api, {"alert_webhook_url": url}, "alert_webhook_url")


def refused(api: APIClient, body: dict[str, Any], field: str) -> None:
    answer = api.put(PATH, body)
    assert answer.status_code == 400, answer.content
    (named,) = answer.json()["error"]["details"]
    assert named.split(".")[0] == field


@pytest.mark.parametrize("content", [b'{"monthly_budget_usd": Infinity}', b'{"monthly_budget_usd": 1e400}'])
def test_number__beyond_all_numbers__is_refused(api: APIClient, content: bytes) -> None:
    assert api.put(PATH, content, content_type="application/json").status_code == 400


MONEY = st.none() | st.integers(0, 10**8) | st.integers(0, 10**14).map(lambda cents: cents / 10**8)
NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9/-]{0,20}", fullmatch=True), unique=True, max_size=5)


def values_of(one: Setting) -> st.SearchStrategy[Any]:
    found: st.SearchStrategy[Any]
    match one.kind:
        case Kind.BOOLEAN:
            found = st.booleans()
        case Kind.INTEGER:
            found = st.integers(one.minimum, one.maximum)
        case Kind.NUMBER:
            found = st.floats(one.minimum, one.maximum)
        case Kind.MONEY:
            found = MONEY
        case Kind.CHOICE:
            found = st.sampled_from(list(map(str, one.choices)))
        case Kind.CHOICES:
            found = st.lists(st.sampled_from(list(one.choices)), unique=True)
        case Kind.OBJECT:
            found = st.fixed_dictionaries({}, optional={part.name: values_of(part) for part in one.settings})
        case Kind.NAMES if one.name not in ("fallback_order", "document_delimiters", "rollout_thresholds"):
            found = NAMES
        case _:
            found = st.just(one.default)
    return st.none() | found if one.is_nullable else found


OBJECTS = st.fixed_dictionaries({}, optional={one.name: values_of(one) for one in SETTINGS})


@settings(max_examples=examples(15, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(values=OBJECTS)
def test_settings__any_good_object__comes_back_equal(api: APIClient, values: dict[str, Any]) -> None:
    expected = {**DEFAULTS, **values, "guardrails": {**GUARDRAILS, **values.get("guardrails", {})}}
    answer = api.put(PATH, values)
    assert answer.status_code == 200, answer.content
    assert without_warnings(answer.json()) == without_warnings(expected)
    assert answer.json() == api.get(PATH).json()
