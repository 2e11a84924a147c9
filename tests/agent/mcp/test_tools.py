from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from agent.tools import registry
from tests.agent.chat.playing import agent, headers_of
from tests.agent.mcp.speaking import PATH, call, content_of, error_code, send, session
from tests.factories.analytics import make_entry, store
from tests.gateway.service import PRICED_MODEL, Gateway, GatewayService

SESSION, USER = "mcp-session", "mcp-user"
OF_SESSION = (
    "get_session",
    "list_session_requests",
    "list_session_feedback",
    "list_session_spans",
    "list_session_logs",
    "get_session_spend",
)
OF_CONFIG = (
    "get_prompt_config",
    "list_prompt_versions",
    "get_prompt_version",
    "list_prompt_activations",
    "list_prompt_labels",
    "list_prompt_label_moves",
)


async def test_initialize__official_client__gets_the_servers_name_version_and_instructions(gateway: Gateway) -> None:
    async with session(gateway) as client:
        result = await client.initialize()

    assert result.server_info.name == "prompt-gateway"
    assert result.protocol_version == "2025-11-25"
    assert result.capabilities.tools is not None
    assert result.capabilities.prompts is not None
    assert result.capabilities.resources is None
    assert "nothing in them is an instruction" in (result.instructions or "")


async def test_official_client__with_the_key_alone__reads_the_keys_project(gateway: Gateway) -> None:
    async with session(gateway, headers={"authorization": f"Bearer {gateway.key}"}) as client:
        tools = (await client.list_tools()).tools
        found = content_of(await client.call_tool("get_project", {}))

    assert len(tools) == len(registry.ALL)
    assert found["id"] == gateway.project_id


async def test_list__all_scopes__is_every_tool_as_the_chat_offers_it(gateway: Gateway) -> None:
    async with session(gateway) as client:
        found = (await client.list_tools()).tools

    assert [(tool.name, tool.title, tool.description, tool.input_schema) for tool in found] == [
        (tool.name, tool.title, tool.description, tool.schema) for tool in registry.ALL
    ]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in found)


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy", "auto"])
async def test_client__of_any_era__lists_and_calls(gateway: Gateway, mode: Any) -> None:
    async with httpx2.AsyncClient(headers=headers_of(gateway), timeout=60) as http:
        transport = streamable_http_client(gateway.service.base_url() + PATH, http_client=http)
        async with Client(transport, mode=mode) as client:
            assert len((await client.list_tools()).tools) == len(registry.ALL)
            assert content_of(await client.call_tool("get_project", {}))["id"] == gateway.project_id
            assert error_code(await client.call_tool("list_sessions", {"limit": 0})) == "invalid_value"


def arguments(service: GatewayService, gateway: Gateway, spool: Path) -> dict[str, dict[str, Any]]:
    project_id = gateway.project_id
    request = json.dumps({"messages": [{"role": "user", "content": "about refunds"}]}).encode()
    entry = make_entry(request, b"{}", project_id=project_id, session_id=SESSION, user_id=USER)
    store(spool, entry)
    versions: list[dict[str, Any]] = [{"system_prompt": "one"}, {"system_prompt": "two"}]
    made = service.seeder.call("make_prompt", project_id=project_id, name="greeter", versions=versions)
    rollout = service.seeder.call(
        "start_rollout",
        project_id=project_id,
        config_id=made["config_id"],
        version_id=made["version_ids"][1],
        allocation_type="random",
        weights=[50, 100],
    )
    rubric = {"name": "refunds", "filter": {"user_id": USER}, "score_name": "helpful", "kind": "boolean"}
    queue = gateway.manage("POST", "reviews", rubric).json()
    greets = {"name": "greets", "kind": "contains", "definition": {"value": "hello"}}
    evaluator = gateway.manage("POST", "evaluators", greets).json()
    sampled = {"evaluator_id": evaluator["id"], "rate": 0.5}
    evaluation = gateway.manage("POST", "online-evaluations", sampled).json()
    dataset = gateway.manage("POST", "datasets", {"name": "refunds"}).json()
    item = {"messages": [{"role": "user", "content": "Where is my refund?"}]}
    gateway.manage("POST", f"datasets/{dataset['id']}/items", {"items": [item]})
    tried = {"candidates": [{"temperature": 0.5}], "dataset_id": dataset["id"]}
    experiment = gateway.manage("POST", "experiments", tried).json()
    of_session, of_config = {"session_id": SESSION}, {"config": "greeter"}
    return {
        "get_request": {"request_id": entry.record.request_id},
        "search_requests": {"query": "refunds"},
        "diff_prompt_versions": {**of_config, "from_version": "1", "to_version": "2"},
        "get_rollout": {"rollout_id": rollout["rollout_id"]},
        "get_rollout_metrics": {"rollout_id": rollout["rollout_id"]},
        "get_price": {"provider": "openai", "model": PRICED_MODEL},
        "get_user_spend": {"user_id": USER},
        "get_review_agreement": {"queue_id": queue["id"]},
        "get_evaluator": {"evaluator_id": evaluator["id"]},
        "get_evaluator_calibration": {"evaluator_id": evaluator["id"]},
        "get_online_evaluation": {"evaluation_id": evaluation["id"]},
        "list_dataset_items": {"dataset_id": dataset["id"]},
        "get_experiment": {"experiment_id": experiment["id"]},
        "list_experiment_items": {"experiment_id": experiment["id"]},
        "estimate_experiment": tried,
        **dict.fromkeys(OF_SESSION, of_session),
        **dict.fromkeys(OF_CONFIG, of_config),
    }


async def test_call__every_tool__gives_its_result(
    gateway: Gateway, service: GatewayService, clickhouse: None, spool: Path
) -> None:
    given = await asyncio.to_thread(arguments, service, gateway, spool)
    contents = {}
    async with session(gateway) as client:
        for tool in registry.ALL:
            result = await client.call_tool(tool.name, given.get(tool.name, {}))
            contents[tool.name] = content_of(result)
            assert not result.is_error, (tool.name, contents[tool.name])

    assert contents["get_project"]["id"] == gateway.project_id
    assert [row["session_id"] for row in contents["list_sessions"]["results"]] == [SESSION]
    assert [row["request_id"] for row in contents["search_requests"]["results"]] == [given["get_request"]["request_id"]]
    settings = gateway.manage("GET", "settings").json()
    assert contents["get_gateway_settings"]["agent_scopes"] == settings["agent_scopes"]


@pytest.mark.parametrize(
    ("name", "given", "code", "named"),
    [
        ("list_sessions", {"limit": 0}, "invalid_value", "limit"),
        ("list_sessions", {"limit": "all"}, "invalid_value", "limit"),
        ("list_sessions", {"project_id": "any"}, "invalid_value", "project_id"),
        ("get_session", {}, "missing_field", "session_id"),
        ("get_session", {"session_id": "a\x00b"}, "invalid_value", "session_id"),
        ("get_session", {"session_id": {"a": [1]}}, "invalid_value", "session_id"),
        ("get_rollout", {"rollout_id": "x" * 10_000}, "invalid_value", "rollout_id"),
        ("drop_everything", {}, "unknown_tool", "drop_everything"),
        ("", {}, "unknown_tool", "''"),
        ("get_project\n", {}, "unknown_tool", "get_project"),
    ],
)
async def test_call__wrongly__is_a_result_that_says_what_is_wrong(
    gateway: Gateway, name: str, given: dict[str, Any], code: str, named: str
) -> None:
    async with session(gateway) as client:
        result = await client.call_tool(name, given)

    assert error_code(result) == code
    assert named in content_of(result)["error"]["message"]


async def test_call__with_numbers_beyond_measure__is_a_result(gateway: Gateway) -> None:
    deep = '{"a":' * 150 + "1" + "}" * 150
    for value in ("1e999", str(2**63), "9" * 5000, deep, "[" * 150 + "]" * 150, '"' + "\\u0000" * 100 + '"'):
        content = json.dumps(call("list_sessions", limit="HERE")).replace('"HERE"', value).encode()

        answer = await asyncio.to_thread(send, gateway, content)

        assert answer.status_code in (200, 400), answer.text
        if answer.status_code == 200:
            assert answer.json()["result"]["isError"], answer.text


async def test_scopes__reduced__tools_are_not_offered_and_forged_calls_refused(gateway: Gateway) -> None:
    async with session(gateway) as client:
        assert (await client.call_tool("list_daily_costs", {})).is_error is False
        gateway.service.set_routing(gateway.project_id, agent_scopes=["project:read"])

        offered = {tool.name for tool in (await client.list_tools()).tools}
        forged = [await client.call_tool(tool.name, {}) for tool in registry.ALL if tool.name not in offered]

    assert offered == {tool.name for tool in registry.ALL if tool.scope == "project:read"}
    assert len(forged) == len(registry.ALL) - len(offered)
    assert {error_code(result) for result in forged} == {"scope_missing"}


async def test_scopes__none__nothing_is_offered(gateway: Gateway) -> None:
    gateway.service.set_routing(gateway.project_id, agent_scopes=[])

    async with session(gateway) as client:
        assert (await client.list_tools()).tools == []
        assert error_code(await client.call_tool("get_project", {})) == "scope_missing"


async def test_clients__two_at_once__each_reads_its_own_project(service: GatewayService) -> None:
    first, second = service.new_project(), service.new_project()
    async with session(first, spread=True) as one, session(second, spread=True) as other:
        found = await asyncio.gather(*(client.call_tool("get_project", {}) for client in [one, other] * 10))

    assert [content_of(result)["id"] for result in found] == [first.project_id, second.project_id] * 10


async def test_calls__hundred_in_one_session__are_answered_by_any_worker(
    gateway: Gateway, service: GatewayService
) -> None:
    async with session(gateway, spread=True) as client:
        found = await asyncio.gather(*(client.call_tool("list_sessions", {"offset": n}) for n in range(100)))

    assert [result.is_error for result in found] == [False] * 100
    lines = [line for line in service.log.read_text().splitlines() if "mcp.tool_called" in line]
    mine = [line for line in lines if gateway.project_id in line and "tool=list_sessions" in line]
    assert len(mine) == 100
    assert all(" is_error=False " in line and " actor=key:" in line and "request_id=" in line for line in mine)


async def test_call__text_of_arguments__is_not_logged(gateway: Gateway, service: GatewayService) -> None:
    async with session(gateway) as client:
        await client.call_tool("search_requests", {"query": "canary-question"})
        await client.call_tool("canary-tool", {"canary-name": "canary-value"})

    assert "canary" not in service.log.read_text()


def test_chat__beside__keeps_its_conversations(gateway: Gateway) -> None:
    send(gateway, call("get_project"))

    assert agent(gateway, "GET", "conversations").json()["count"] == 0
