from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from core.models import Project
from prompts.models import PromptConfig, PromptVersion
from prompts.services import set_rollout_active
from tests.factories.prompts import make_config, make_version
from tests.prompts.paths import config_path

TOOL = {
    "type": "function",
    "function": {"name": "find", "description": "Looks it up.", "parameters": {"type": "object", "z": 1, "a": 2}},
}
FULL = {
    "system_prompt": "  You help {{ name }}.\n",
    "model": "gpt-4o",
    "temperature": 0.7,
    "max_tokens": 500,
    "variables": [{"name": "name", "type": "string", "required": True}],
    "tools": [TOOL],
    "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"z": {}, "a": {}}}},
    "commit_message": "First words",
}


@pytest.fixture
def config(project: Project) -> PromptConfig:
    return make_config(project)


def versions_path(config: PromptConfig, *rest: object) -> str:
    return config_path(config.pk, "versions", *rest)


def test_post__all_fields__201_as_it_was_sent(api: APIClient, config: PromptConfig) -> None:
    response = api.post(versions_path(config), {**FULL, "project_id": str(config.project_id)})
    assert response.status_code == 201, response.content
    body = response.json()
    assert {name: body[name] for name in FULL} == FULL
    assert str(body["tools"]) == str(FULL["tools"])
    assert (body["version_number"], body["is_active"], body["config_id"]) == (1, True, str(config.pk))
    assert body["created_by"].startswith("key:")
    shown = api.get(versions_path(config, body["id"])).json()
    assert "usage" in shown
    assert shown == {**body, "usage": shown["usage"]}


def test_post__prompt_only__the_rest_says_nothing(api: APIClient, config: PromptConfig) -> None:
    empty = {"model": None, "temperature": None, "variables": None, "tools": None, "commit_message": None}
    for body in (
        {"system_prompt": "Hi"},
        {"system_prompt": "Hi", "response_format": None, "max_tokens": None, **empty},
    ):
        shown = api.post(versions_path(config), body).json()
        assert (shown["model"], shown["temperature"], shown["max_tokens"]) == ("", None, None)
        assert (shown["variables"], shown["tools"], shown["response_format"]) == ([], [], None)
        assert shown["commit_message"] == ""


def test_post__several__numbers_count_up_and_the_first_stays_active(api: APIClient, config: PromptConfig) -> None:
    shown = [api.post(versions_path(config), {"system_prompt": f"v{n}"}).json() for n in range(3)]
    assert [(row["version_number"], row["is_active"]) for row in shown] == [(1, True), (2, False), (3, False)]


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def tool(**function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", **function}}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"system_prompt": ""}, "system_prompt"),
        ({"system_prompt": " \n"}, "system_prompt"),
        ({"system_prompt": "é" * 524_289}, "system_prompt"),
        ({"model": 5.5, "temperature": "hot"}, "temperature"),
        ({"temperature": "NaN"}, "temperature"),
        ({"variables": {"name": "x"}}, "variables"),
        ({"variables": "name"}, "variables"),
        ({"variables": [{"name": "x"}, {"name": "1"}]}, "variables.1.name"),
        ({"variables": [{"name": "x", "type": "date"}]}, "variables.0.type"),
        ({"variables": [{"name": "x", "required": 1}]}, "variables.0.required"),
        ({"variables": [{"name": "x"}, {"name": "x"}]}, "variables.1.name"),
        ({"tools": {}}, "tools"),
        ({"tools": ["find"]}, "tools.0"),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
        ({"tools": [{"type": "function"}]}, "tools.0.function"),
        ({"tools": [tool(name="two words")]}, "tools.0.function.name"),
        ({"tools": [tool(name="x" * 65)]}, "tools.0.function.name"),
        ({"tools": [tool(parameters=[])]}, "tools.0.function.parameters"),
        ({"tools": [tool(description=5)]}, "tools.0.function.description"),
        ({"tools": [tool(), tool()]}, "tools.1.function.name"),
        ({"tools": [tool(name=f"f{n}") for n in range(129)]}, "tools"),
        ({"tools": [tool(parameters=nested(64))]}, "tools"),
        ({"tools": [tool(description="x" * 1_048_576)]}, "tools"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": []}, "response_format"),
        ({"response_format": {}}, "response_format.type"),
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"response_format": {"type": "json_schema", "json_schema": "x"}}, "response_format.json_schema"),
        ({"response_format": {"type": "text", "deep": nested(64)}}, "response_format"),
    ],
)
def test_post__bad_field__400_naming_it(api: APIClient, config: PromptConfig, body: dict[str, Any], field: str) -> None:
    response = api.post(versions_path(config), {"system_prompt": "x", **body})
    assert response.status_code == 400
    error = response.json()["error"]
    assert field in error["details"]
    assert error["type"] == "invalid_request_error"
    assert not PromptVersion.objects.exists()


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b'{"system_prompt": "x", "tools": [{"type": "function", "function": {"name": "f", "x": 1e400}}]}', 400),
        (b'{"system_prompt": "x", "temperature": 1e400}', 400),
        (b'{"system_prompt": "x", "temperature": NaN}', 400),
        (b'{"system_prompt": "a\\u0000b"}', 400),
        (b'{"system_prompt": "\\ud800"}', 400),
        (b'{"system_prompt": "x", "tools": ' + b"[" * 900 + b"]" * 900 + b"}", 400),
        (b'{"system_prompt": "x", "tools": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        (b'{"system_prompt": "x"', 400),
        (b"[]", 400),
        (b'{"system_prompt": "x", "temperature": 2, "max_tokens": 1000000}', 201),
        (b'{"system_prompt": "x", "temperature": 0, "max_tokens": 1}', 201),
    ],
)
def test_post__raw_json__refused_or_taken_and_never_a_failure(
    api: APIClient, config: PromptConfig, raw: bytes, status: int
) -> None:
    response = api.post(versions_path(config), raw, content_type="application/json")
    assert response.status_code == status, response.content
    assert status == 201 or "message" in response.json()["error"]


def test_post__several_bad_fields__all_named(api: APIClient, config: PromptConfig) -> None:
    body = {"system_prompt": " ", "tools": [{}], "variables": [{}], "response_format": {"type": "x"}}
    details = api.post(versions_path(config), body).json()["error"]["details"]
    assert sorted(details) == ["response_format.type", "system_prompt", "tools.0.type", "variables.0.name"]


def test_post__unknown_config__404_before_the_body_is_looked_at(api: APIClient) -> None:
    assert api.post(config_path(uuid4(), "versions"), {}).status_code == 404


def test_get_list__newest_first_and_filters(
    api: APIClient, config: PromptConfig, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for text, message in (("alpha", "one"), ("beta", "two"), ("gamma", "back to Alpha")):
        make_version(config, text, commit_message=message)
    path = versions_path(config)
    api.get(path)
    # The queries read the key, the config, the page and its count.
    with django_assert_num_queries(4):
        body = api.get(path).json()
    assert (body["count"], [row["version_number"] for row in body["results"]]) == (3, [3, 2, 1])
    for query, numbers in (
        ({"search": "ALPHA"}, [3, 1]),
        ({"version_number": "2"}, [2]),
        ({"version_number": "99999999999999999999"}, []),
        ({"limit": "1", "offset": "1"}, [2]),
    ):
        assert [row["version_number"] for row in api.get(path, query).json()["results"]] == numbers


def test_version__put_patch_delete__405(api: APIClient, config: PromptConfig) -> None:
    path = versions_path(config, make_version(config).pk)
    for response in (api.put(path, FULL), api.patch(path, FULL), api.delete(path)):
        assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")


def test_version__of_another_config__404(api: APIClient, config: PromptConfig) -> None:
    own, foreign = make_version(config), make_version(make_config(config.project))
    for response in (
        api.get(versions_path(config, foreign.pk)),
        api.post(versions_path(config, foreign.pk, "activate")),
        api.get(versions_path(config, own.pk, "diff", foreign.pk)),
        api.get(versions_path(config, foreign.pk, "diff", own.pk)),
    ):
        assert (response.status_code, response.json()["error"]["code"]) == (404, "prompt_version_not_found")


def active_number(api: APIClient, config: PromptConfig) -> Any:
    return api.get(config_path(config.pk)).json()["active_version_number"]


def test_activate_and_undo__history_says_who_when_from_to_why(api: APIClient, config: PromptConfig) -> None:
    make_version(config)
    second = make_version(config)
    response = api.post(versions_path(config, second.pk, "activate"), {"reason": "shorter"})
    assert (response.status_code, response.json()["is_active"], active_number(api, config)) == (200, True, 2)
    response = api.post(config_path(config.pk, "activations", "undo"), {"reason": "worse"})
    assert (response.status_code, response.json()["active_version_number"]) == (200, 1)

    history = api.get(config_path(config.pk, "activations")).json()
    shown = [
        (row["kind"], row["from_version_number"], row["to_version_number"], row["reason"]) for row in history["results"]
    ]
    assert shown == [("undone", 2, 1, "worse"), ("activated", 1, 2, "shorter"), ("created", None, 1, "")]
    undone, activated, created = history["results"]
    assert (undone["undoes"], activated["undoes"]) == (activated["id"], None)
    assert activated["actor"].startswith("key:")
    assert (activated["to_version_id"], created["from_version_id"]) == (str(second.pk), None)
    assert activated["created_at"].endswith("Z")

    only = api.get(config_path(config.pk, "activations"), {"kind": "created"}).json()
    assert [row["kind"] for row in only["results"]] == ["created"]


def test_undo__nothing_left__409(api: APIClient, config: PromptConfig) -> None:
    for _ in range(2):
        response = api.post(config_path(config.pk, "activations", "undo"))
        assert (response.status_code, response.json()["error"]["code"]) == (409, "nothing_to_undo")
        make_version(config)


def test_activate_and_undo__active_rollout__409(api: APIClient, config: PromptConfig) -> None:
    make_version(config)
    second = make_version(config)
    set_rollout_active(config_id=config.pk, active=True)
    for path in (versions_path(config, second.pk, "activate"), config_path(config.pk, "activations", "undo")):
        response = api.post(path)
        assert (response.status_code, response.json()["error"]["code"]) == (409, "rollout_active")
    assert active_number(api, config) == 1


def test_diff__two_versions__side_by_side(api: APIClient, config: PromptConfig) -> None:
    before = make_version(config, "one\ntwo\nthree", temperature=0.5, tools=[tool(), tool(name="old")])
    after = make_version(
        config,
        "one\n2\nthree\nfour",
        model="gpt-4o",
        temperature=0.5,
        tools=[tool(strict=True), tool(name="new")],
        variables=[{"name": "x"}],
    )
    body = api.get(versions_path(config, before.pk, "diff", after.pk)).json()
    assert (body["from"]["version_number"], body["to"]["version_number"]) == (1, 2)
    rows = [(r["kind"], r["from_line"], r["from_text"], r["to_line"], r["to_text"]) for r in body["system_prompt"]]
    assert rows == [
        ("equal", 1, "one", 1, "one"),
        ("changed", 2, "two", 2, "2"),
        ("equal", 3, "three", 3, "three"),
        ("added", None, None, 4, "four"),
    ]
    assert [(change["name"], change["kind"]) for change in body["tools"]] == [
        ("f", "changed"),
        ("old", "removed"),
        ("new", "added"),
    ]
    assert body["parameters"] == [{"name": "model", "kind": "added", "from": None, "to": "gpt-4o"}]
    assert body["variables"] == [{"name": "x", "kind": "added", "from": None, "to": {"name": "x"}}]
    same = api.get(versions_path(config, after.pk, "diff", after.pk)).json()
    assert {row["kind"] for row in same["system_prompt"]} == {"equal"}
    assert same["tools"] == same["parameters"] == same["variables"] == []
