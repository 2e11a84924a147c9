from __future__ import annotations

from rest_framework.test import APIClient

from tests.tables.cases import tabled

KEYS = "/api/llm/keys"


@tabled
def test_method__that_no_action_serves__answers_405_with_those_that_are_there(
    api: APIClient, headers: dict[str, str], method: str, path: str, allowed: str
) -> None:
    response = api.generic(method, path, headers=headers)

    assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")
    assert response.headers["allow"] == allowed


def test_head__of_a_list__has_the_status_of_get_and_its_right(api: APIClient, headers: dict[str, str]) -> None:
    assert api.head(KEYS, headers=headers).status_code == 200
    assert api.head(KEYS).status_code == 401


def test_options__of_a_row__needs_no_row(api: APIClient, headers: dict[str, str]) -> None:
    assert api.options(f"{KEYS}/1", headers=headers).status_code == 200


def test_path__with_a_slash_at_its_end__is_not_there(api: APIClient, headers: dict[str, str]) -> None:
    assert api.get(f"{KEYS}/", headers=headers).status_code == 404
