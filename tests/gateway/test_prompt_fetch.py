"""`GET /api/llm/prompts/{name}`: a prompt as an application fetches it from a running service."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from tests.gateway.managed import Prompt, make_prompt
from tests.gateway.service import Gateway, GatewayService

PATH = "/api/llm/prompts"
VARIABLES: list[dict[str, Any]] = [
    {"name": "who", "type": "string", "required": True},
    {"name": "count", "type": "number"},
]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def shared(service: GatewayService) -> tuple[Gateway, Prompt]:
    """A project with the config `support` of two versions, the first of which is active."""
    project = service.new_project()
    fields: dict[str, Any] = {"variables": VARIABLES, "model": "gpt-4o", "temperature": 0.5, "tools": [TOOL]}
    return project, make_prompt(project, "Help {{ who }} {{count}}.", "Be kind to {{ who }}.", **fields)


def fetch(project: Gateway, name: str = "support", *, key: str = "", **query: Any) -> httpx2.Response:
    headers = {"authorization": f"Bearer {key or project.key}"}
    return project.service.client.get(f"{project.service.base_url()}{PATH}/{name}", params=query, headers=headers)


def refused(response: httpx2.Response, status: int, code: str, field: str = "") -> None:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    assert field in error.get("details", {field: []})


def test_fetch__without_more__is_the_active_version_as_written(shared: tuple[Gateway, Prompt]) -> None:
    project, prompt = shared

    response = fetch(project)

    assert response.status_code == 200, response.text
    text = "Help {{ who }} {{count}}."
    assert response.json() == {
        "name": "support",
        "config_id": prompt.config_id,
        "version_id": prompt.version_ids[0],
        "version_number": 1,
        "label": None,
        "model": "gpt-4o",
        "temperature": 0.5,
        "max_tokens": None,
        "tools": [TOOL],
        "response_format": None,
        "variables": [VARIABLES[0], {**VARIABLES[1], "required": False}],
        "messages": [{"role": "system", "content": text}],
        "system_prompt": text,
        "rendered": False,
        "rollout": None,
        "attributes": {
            "gen_ai.prompt.name": "support",
            "gen_ai.prompt.version": "1",
            "prompt_gateway.prompt.config_id": prompt.config_id,
        },
    }
    assert response.headers["cache-control"].startswith("private, max-age=")
    assert "stale-while-revalidate=" in response.headers["cache-control"]


def test_fetch__of_a_version__is_that_one_whichever_is_active(shared: tuple[Gateway, Prompt]) -> None:
    project, prompt = shared

    fetched = fetch(project, version=2, variables=json.dumps({"who": "Ann"})).json()

    assert (fetched["version_id"], fetched["version_number"]) == (prompt.version_ids[1], 2)
    assert (fetched["system_prompt"], fetched["rendered"]) == ("Be kind to Ann.", True)


def test_render__by_query_and_by_body__is_the_same(shared: tuple[Gateway, Prompt]) -> None:
    project, _ = shared
    variables = {"who": "Zoë {{ count }}", "count": 3}

    by_query = fetch(project, variables=json.dumps(variables)).json()
    by_body = project.manage("POST", "prompts/support/render", {"variables": variables}).json()

    assert by_query == by_body
    assert by_query["messages"] == [{"role": "system", "content": "Help Zoë {{ count }} 3."}]


@pytest.mark.parametrize(
    ("query", "status", "code", "field"),
    [
        ({"render": "true"}, 422, "missing_variable", "prompt_variables.who"),
        ({"variables": '{"who": "A", "x": 1}'}, 422, "unknown_variable", "prompt_variables.x"),
        ({"variables": '{"who": 1}'}, 422, "invalid_variable", "prompt_variables.who"),
        ({"variables": "[1]"}, 400, "invalid_value", "variables"),
        ({"variables": "{"}, 400, "invalid_value", "variables"),
        ({"render": "perhaps"}, 400, "invalid_value", "render"),
        ({"version": "0"}, 400, "invalid_value", "version"),
        ({"version": "two"}, 400, "invalid_value", "version"),
        ({"version": "9" * 5000}, 400, "invalid_value", "version"),
        ({"version": "3"}, 404, "prompt_version_not_found", ""),
        ({"version": "1", "label": "production"}, 400, "invalid_value", "label"),
        ({"label": "production"}, 404, "prompt_label_not_found", ""),
        ({"user": "ann"}, 400, "invalid_value", "user"),
        ({"user_id": "u" * 600}, 400, "invalid_value", "user_id"),
        ({"project_id": "6f9619ff-8b86-4011-b42d-00c04fc964ff"}, 403, "project_mismatch", ""),
    ],
)
def test_fetch__wrong_question__is_refused_by_name(
    shared: tuple[Gateway, Prompt], query: dict[str, str], status: int, code: str, field: str
) -> None:
    refused(fetch(shared[0], **query), status, code, field)


@pytest.mark.parametrize("body", [{"render": True}, {"variables": 1}, {"version": True}, {"label": 3}])
def test_render__wrong_body__is_refused_by_name(shared: tuple[Gateway, Prompt], body: dict[str, Any]) -> None:
    refused(shared[0].manage("POST", "prompts/support/render", body), 400, "invalid_value", next(iter(body)))


def test_fetch__unknown_name_or_method__is_refused(shared: tuple[Gateway, Prompt]) -> None:
    project, _ = shared

    refused(fetch(project, "nobody"), 404, "prompt_config_not_found")
    refused(project.manage("DELETE", "prompts/support"), 405, "method_not_allowed")
    assert project.manage("DELETE", "prompts/support").headers["allow"] == "GET, HEAD"


def test_fetch__by_head__is_the_answer_without_the_body(shared: tuple[Gateway, Prompt]) -> None:
    project, _ = shared
    whole, head = (project.manage(method, "prompts/support") for method in ("GET", "HEAD"))

    assert (head.status_code, head.headers["etag"], head.content) == (200, whole.headers["etag"], b"")


def test_fetch__etag_of_the_answer__gives_304_until_the_answer_changes(service: GatewayService) -> None:
    project = service.new_project()
    prompt = make_prompt(project, "One.", "Two.")
    first = fetch(project)
    etag = first.headers["etag"]
    url, headers = f"{service.base_url()}{PATH}/support", {**project.headers, "if-none-match": f'"x", W/{etag}'}

    unchanged = service.client.get(url, headers=headers)
    prompt.activate(prompt.version_ids[1])
    changed = service.until(lambda: service.client.get(url, headers=headers), lambda answer: answer.status_code == 200)

    assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", etag)
    assert "max-age" in unchanged.headers["cache-control"]
    assert changed.json()["system_prompt"] == "Two."
    assert changed.headers["etag"] != etag


@pytest.mark.parametrize(("scopes", "status"), [(["gateway"], 200), (["manage"], 200), (["metrics:read"], 403)])
def test_fetch__key_of_other_scopes__is_refused(shared: tuple[Gateway, Prompt], scopes: list[str], status: int) -> None:
    project, _ = shared
    key = project.service.make_key(project.project_id, scopes=scopes)

    assert fetch(project, key=key).status_code == status


def test_fetch__without_key_or_of_another_project__is_refused(shared: tuple[Gateway, Prompt]) -> None:
    project, _ = shared
    url = f"{project.service.base_url()}{PATH}/support"

    refused(project.service.client.get(url), 401, "missing_api_key")
    refused(fetch(project, key="svc_wrong"), 401, "invalid_api_key")
    refused(fetch(project.service.new_project()), 404, "prompt_config_not_found")


@pytest.mark.parametrize("name", ["team/welcome", "a b", "ä", "welcome/render", "?"])
def test_fetch__name_of_any_characters__is_found(service: GatewayService, name: str) -> None:
    project = service.new_project()
    make_prompt(project, "Hello.", name=name)

    by_path = fetch(project, quote(name, safe=""))
    by_query = service.client.get(f"{service.base_url()}{PATH}", params={"name": name}, headers=project.headers)

    assert by_query.json()["name"] == name
    assert by_path.json() == by_query.json()


def test_fetch__name_of_a_path_of_the_api__is_reached_by_query(service: GatewayService) -> None:
    project = service.new_project()
    prompt = make_prompt(project, "Hello.", name="before")
    with closing(sqlite3.connect(service.database)) as database:
        database.execute("UPDATE prompts_promptconfig SET name = 'export' WHERE name = 'before'")
        database.commit()
    prompt.add("Hello again.")

    found = service.until(
        lambda: service.client.get(f"{service.base_url()}{PATH}?name=export", headers=project.headers),
        lambda response: response.status_code == 200,
    )

    assert found.json()["name"] == "export"
    # The path is that of the export, which needs the header of the project.
    refused(fetch(project, "export"), 401, "invalid_project")
    refused(service.client.get(f"{service.base_url()}{PATH}", headers=project.headers), 400, "missing_field", "name")


@pytest.mark.parametrize("name", ["configs", "export/x", "support@production", "@"])
def test_name__that_could_not_be_fetched__is_refused(shared: tuple[Gateway, Prompt], name: str) -> None:
    refused(shared[0].manage("POST", "prompts/configs", {"name": name}), 400, "invalid_value", "name")


def test_rollout__fetch_for_a_user__is_the_arm_of_the_users_requests(service: GatewayService) -> None:
    project = service.new_project()
    prompt = make_prompt(project, "Old.", "New.")
    rollout = prompt.roll_out(prompt.version_ids[1], 40, allocation_type="user_sticky")
    service.until(lambda: fetch(project, user_id="u-1").json()["rollout"], bool)
    users = [f"u-{number}" for number in range(40)]

    fetched = {user: fetch(project, user_id=user).json() for user in users}

    arms = {user: one["rollout"]["arm"] for user, one in fetched.items()}
    assert set(arms.values()) == {"target", "baseline"}
    for user, one in fetched.items():
        target = arms[user] == "target"
        assert one["system_prompt"] == ("New." if target else "Old.")
        assert one["rollout"] == {"id": rollout.id, "arm": arms[user], "share": 0.4 if target else 0.6}
        assert one["attributes"]["prompt_gateway.variant"] == arms[user]
        assert one["attributes"]["prompt_gateway.rollout_id"] == rollout.id
    again = {user: fetch(project, user_id=user, session_id="other").json()["rollout"]["arm"] for user in users}
    assert again == arms


def test_rollout__paused__leaves_the_active_version(service: GatewayService) -> None:
    project = service.new_project()
    prompt = make_prompt(project, "Old.", "New.")
    rollout = prompt.roll_out(prompt.version_ids[1], 100)
    service.until(lambda: fetch(project).json()["rollout"], bool)
    assert fetch(project).headers["cache-control"] == "private, no-cache"

    rollout.move("pause")
    paused = service.until(lambda: fetch(project).json(), lambda one: one["rollout"] is None)

    assert paused["system_prompt"] == "Old."


def test_config__without_a_version__is_404(service: GatewayService) -> None:
    project = service.new_project()
    make_prompt(project, name="empty")

    refused(fetch(project, "empty"), 404, "prompt_version_not_found")
