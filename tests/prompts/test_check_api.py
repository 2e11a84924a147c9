from __future__ import annotations

from typing import Any

from rest_framework.test import APIClient

from prompts.models import PromptVersion
from tests.prompts.paths import BASE
from tests.tables.cases import tabled

PATH = f"{BASE}/check"


def check(api: APIClient, **body: Any) -> dict[str, Any]:
    answer = api.post(PATH, body, format="json")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def places(found: dict[str, Any]) -> list[tuple[str, str, int | None, int | None]]:
    return [(item["severity"], item["field"], item["line"], item["column"]) for item in found["findings"]]


def test_check__declared_and_undeclared_variables__each_with_its_use(api: APIClient) -> None:
    declared = [
        {"name": "user", "type": "string", "required": True},
        {"name": "age", "type": "number"},
    ]

    found = check(api, system_prompt="Help {{ user }}.\nIn {{tone}}, {{ tone }}.", variables=declared)

    assert found["variables"] == [
        {"name": "user", "type": "string", "required": True, "is_declared": True, "count": 1, "first_line": 1},
        {"name": "age", "type": "number", "required": False, "is_declared": True, "count": 0, "first_line": None},
        {"name": "tone", "type": "string", "required": False, "is_declared": False, "count": 2, "first_line": 2},
    ]
    assert (found["undeclared"], found["unused"], found["valid"]) == (["tone"], ["age"], True)
    assert PromptVersion.objects.count() == 0


def test_check__text__tokens_are_estimated_from_its_bytes(api: APIClient) -> None:
    found = check(api, system_prompt="Grüße, Welt")

    assert (found["size_bytes"], found["token_count"], found["tokens_estimated"]) == (13, 4, True)


def test_check__braces_without_a_name__warned_about_with_line_and_column(api: APIClient) -> None:
    found = check(api, system_prompt="Hello {{ user.name }}\n  {{ if }} {{ ok }} {{", variables=[{"name": "ok"}])

    assert ("warning", "system_prompt", 1, 7) in places(found)
    assert ("warning", "system_prompt", 2, 21) in places(found)
    assert found["valid"]


@tabled
def test_check__fault__is_no_failure_and_has_its_place(
    api: APIClient, fields: dict[str, Any], place: tuple[Any, ...]
) -> None:
    found = check(api, **{"system_prompt": "Be kind.", **fields})

    assert not found["valid"]
    assert place in places(found)


def test_check__right_contract__nothing_is_found(api: APIClient) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    contract = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}

    found = check(api, system_prompt="Be kind.", response_format=contract, tools="[]")

    assert (found["findings"], found["valid"]) == ([], True)
