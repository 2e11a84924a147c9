from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import GetPromptResult, PaginatedRequestParams, Prompt, TextContent

from agent.mcp.prompts import ANSWER, PAGE_PROMPTS
from agent.tools import registry
from tests.agent.chat.playing import headers_of
from tests.agent.mcp.speaking import PATH, error_code, message, send, session
from tests.gateway.managed import make_prompt
from tests.gateway.service import Gateway, GatewayService
from tests.tables.cases import tabled

VARIABLES: list[dict[str, Any]] = [
    {"name": "who", "type": "string", "required": True},
    {"name": "count", "type": "number"},
]
TURNS = [
    {"role": "system", "content": "Help {{ who }}."},
    {"role": "user", "content": "Good day"},
    {"role": "assistant", "content": "Good day, {{ who }}: {{ tone }}"},
]


def narrow(gateway: Gateway, *scopes: str) -> dict[str, str]:
    key = gateway.service.make_key(gateway.project_id, scopes=list(scopes))
    return {**headers_of(gateway), "authorization": f"Bearer {key}"}


def texts(result: GetPromptResult) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for one in result.messages:
        assert isinstance(one.content, TextContent)
        found.append((one.role, one.content.text))
    return found


def refusal(error: MCPError) -> tuple[int, str]:
    return error.code, str(error.data["code"])


async def all_prompts(gateway: Gateway) -> tuple[list[Prompt], int]:
    found: list[Prompt] = []
    pages, cursor = 0, None
    async with session(gateway, spread=True) as client:
        while pages == 0 or cursor is not None:
            result = await client.list_prompts(params=PaginatedRequestParams(cursor=cursor))
            found += result.prompts
            pages, cursor = pages + 1, result.next_cursor
    return found, pages


async def test_list__prompts_with_variables__names_them_as_arguments(gateway: Gateway) -> None:
    prompt = make_prompt(gateway, "Help {{ who }} {{ count }} {{ tone }}.", "Other", variables=VARIABLES)
    prompt.label("production", 2)
    make_prompt(gateway, "Plain", name="plain")
    gateway.service.seeder.call("make_prompt", project_id=gateway.project_id, name="unwritten", versions=[])

    found, pages = await all_prompts(gateway)

    assert pages == 1
    assert [one.name for one in found] == ["plain", "support"]
    assert found[0].arguments == []
    assert [(one.name, one.required, one.description) for one in found[1].arguments or []] == [
        ("who", True, None),
        ("count", False, "JSON: number"),
        ("tone", False, None),
    ]
    assert found[1].description == "Version 1 is active. By label: support@production."


async def test_list__while_a_rollout_runs__has_the_arguments_of_both_arms(gateway: Gateway) -> None:
    prompt = make_prompt(gateway, "Help {{ who }}.", variables=VARIABLES[:1])
    target = prompt.add("{{ count }}", variables=VARIABLES[1:])
    prompt.roll_out(target, 50, 100)

    found, _ = await all_prompts(gateway)

    assert [one.name for one in found[0].arguments or []] == ["who", "count"]


async def test_list__more_than_a_page__is_read_on_by_the_cursor(gateway: Gateway) -> None:
    names = [f"prompt-{number:03}" for number in range(PAGE_PROMPTS + 1)]
    for name in names:
        make_prompt(gateway, "Text", name=name)

    found, pages = await all_prompts(gateway)

    assert [one.name for one in found] == names
    assert pages == 2


@pytest.mark.parametrize("cursor", ["no cursor", "é", "gA==", "x" * 10_001])
async def test_list__wrong_cursor__is_an_error_that_names_it(gateway: Gateway, cursor: str) -> None:
    async with session(gateway) as client:
        with pytest.raises(MCPError) as refused:
            await client.list_prompts(params=PaginatedRequestParams(cursor=cursor))

    assert refusal(refused.value) == (-32602, "invalid_value")
    assert "cursor" in refused.value.data["details"]


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy", "auto"])
async def test_client__of_any_era__lists_and_gets(gateway: Gateway, mode: Any) -> None:
    make_prompt(gateway, "Help {{ who }}.", variables=VARIABLES[:1])
    async with httpx2.AsyncClient(headers=headers_of(gateway), timeout=60) as http:
        transport = streamable_http_client(gateway.service.base_url() + PATH, http_client=http)
        async with Client(transport, mode=mode) as client:
            assert [one.name for one in (await client.list_prompts()).prompts] == ["support"]
            result = await client.get_prompt("support", {"who": "Ann"})

    assert texts(result) == [("user", "Help Ann.")]


async def test_get__version_with_messages__is_the_answer_of_the_fetch(gateway: Gateway) -> None:
    gateway.service.seeder.call(
        "make_prompt",
        project_id=gateway.project_id,
        name="support",
        versions=[{"messages": TURNS, "variables": VARIABLES, "model": "gpt-4o"}],
    )
    async with session(gateway) as client:
        result = await client.get_prompt("support", {"who": "Ann", "count": "3"})

    assert texts(result) == [
        ("user", "Help Ann."),
        ("user", "Good day"),
        ("assistant", "Good day, Ann: {{ tone }}"),
    ]
    fetched = gateway.client.post(
        "/api/llm/prompts/support/render",
        json={"variables": {"who": "Ann", "count": 3}},
        headers={"authorization": f"Bearer {gateway.key}"},
    )
    assert result.meta is not None
    assert result.meta[ANSWER] == fetched.json()
    assert result.meta[ANSWER]["messages"][0]["role"] == "system"


@tabled
async def test_get__label_or_number_behind_the_name__is_that_version(
    gateway: Gateway, name: str, text: str, label: str | None
) -> None:
    make_prompt(gateway, "one", "two", "three").label("staging", 2)

    async with session(gateway, spread=True) as client:
        result = await client.get_prompt(name)

    assert texts(result) == [("user", text)]
    assert result.meta is not None
    assert result.meta[ANSWER]["label"] == label


async def test_get__while_a_rollout_runs__is_the_arm_of_the_user_of_the_header(gateway: Gateway) -> None:
    prompt = make_prompt(gateway, "baseline", "target")
    prompt.roll_out(prompt.version_ids[1], 50, 100, allocation_type="user_sticky")
    arms = set()
    for number in range(20):
        headers = {**headers_of(gateway), "x-svc-user-id": f"user-{number}"}
        fetched = gateway.client.get(
            f"/api/llm/prompts/support?render=true&user_id=user-{number}", headers=headers
        ).json()
        got = await asyncio.to_thread(send, gateway, message("prompts/get", name="support"), headers)
        assert got.json()["result"]["_meta"][ANSWER] == fetched
        arms.add(fetched["rollout"]["arm"])

    assert arms == {"target", "baseline"}


@tabled
async def test_get__that_cannot_be_answered__is_an_error_that_says_why(
    gateway: Gateway, name: str, given: dict[str, str], code: str, named: str
) -> None:
    make_prompt(gateway, "Help {{ who }} {{ count }}.", variables=VARIABLES)

    async with session(gateway) as client:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt(name, given)

    assert refusal(refused.value) == (-32602, code)
    assert named in refused.value.message


@pytest.mark.parametrize("scope", ["prompts:read", "gateway"])
async def test_narrow_key__reads_prompts_and_no_tool(gateway: Gateway, scope: str) -> None:
    make_prompt(gateway, "Hello")

    async with session(gateway, headers=narrow(gateway, scope)) as client:
        assert [one.name for one in (await client.list_prompts()).prompts] == ["support"]
        assert texts(await client.get_prompt("support")) == [("user", "Hello")]
        assert (await client.list_tools()).tools == []
        refused = {error_code(await client.call_tool(tool.name, {})) for tool in registry.ALL}

    assert refused == {"permission_denied"}


async def test_prompts__scopes_of_the_agent_are_none__are_there(gateway: Gateway) -> None:
    make_prompt(gateway, "Hello")
    gateway.service.set_routing(gateway.project_id, agent_scopes=[])

    async with session(gateway) as client:
        assert texts(await client.get_prompt("support")) == [("user", "Hello")]


async def test_prompts__of_another_project__are_not_there(service: GatewayService) -> None:
    first, second = service.new_project(), service.new_project()
    make_prompt(first, "Hello")

    async with session(second, spread=True) as client:
        assert (await client.list_prompts()).prompts == []
        with pytest.raises(MCPError) as refused:
            await client.get_prompt("support")

    assert refusal(refused.value) == (-32602, "prompt_config_not_found")


async def test_get__values__are_not_logged(gateway: Gateway, service: GatewayService) -> None:
    prompt = make_prompt(gateway, "Help {{ who }}.", variables=VARIABLES[:1])
    async with session(gateway) as client:
        await client.get_prompt("support", {"who": "canary-value"})

    log = service.log.read_text()
    assert "canary" not in log
    (line,) = [line for line in log.splitlines() if "mcp.prompt_fetched" in line and prompt.config_id in line]
    assert gateway.project_id in line and " actor=key:" in line and " version=1 " in line
