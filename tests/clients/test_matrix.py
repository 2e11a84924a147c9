"""Unchanged clients: each reaches the sandbox with only a base address, a key and a model's name.

What a client says of an answer is compared with what the sandbox received and gave.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.clients import REFUSALS, TOOLS, TURNS, Client
from tests.clients.conftest import Play, prompt_of, ways
from tests.clients.provider import Exchange, RecordingSandbox

STATUSES = {"bad_key": 401, "unknown_model": 404, "bad_field": 400}


@pytest.fixture
def result(play: Play, client: Client, variant: str, case: str) -> dict[str, Any]:
    found = play(client)[f"{variant}.{case}"]
    assert "traceback" not in found, found["traceback"]
    return found


@pytest.fixture
def exchanges(
    result: dict[str, Any], provider: RecordingSandbox, client: Client, variant: str, case: str
) -> list[Exchange]:
    return provider.exchanges_about(prompt_of(client, variant, case))


def check_usage(client: Client, result: dict[str, Any], exchange: Exchange) -> None:
    assert ("usage" in result) is client.shows_usage
    assert not client.shows_usage or tuple(result["usage"]) == exchange.usage


@ways("whole")
def test_client__whole_answer__is_what_the_provider_gave(
    client: Client, result: dict[str, Any], exchanges: list[Exchange]
) -> None:
    (exchange,) = exchanges
    assert not exchange.request.get("stream")
    assert result["text"] == exchange.message["content"]
    check_usage(client, result, exchange)


@ways("streamed")
def test_client__stream__is_what_the_provider_gave_piece_by_piece(
    client: Client, result: dict[str, Any], exchanges: list[Exchange]
) -> None:
    (exchange,) = exchanges
    assert exchange.request["stream"] is True
    assert result["pieces"] > 1
    if "value" in result:
        assert result["value"] == given_value(exchange)
    else:
        assert result["text"] == exchange.message["content"]
    check_usage(client, result, exchange)


@ways(*TOOLS)
def test_client__tool__is_called_and_its_result_returned(
    case: str, result: dict[str, Any], exchanges: list[Exchange]
) -> None:
    first, second = exchanges
    assert all(bool(exchange.request.get("stream")) == (case == "tools_streamed") for exchange in exchanges)
    (call_id, name, arguments) = first.calls[0]
    assert name == "get_weather"
    assert result["cities"] == [arguments["city"]]
    answered = second.request["messages"][-1]
    assert (answered["role"], answered["tool_call_id"]) == ("tool", call_id)
    assert second.request["messages"][-2]["tool_calls"][0]["id"] == call_id
    assert f"sunny in {arguments['city']}" in str(answered["content"])
    assert result["text"] == second.message["content"]


@ways(TURNS)
def test_client__second_turn__holds_the_first_and_its_reasoning_was_shown(
    result: dict[str, Any], exchanges: list[Exchange]
) -> None:
    first, second = exchanges
    assert result["reasoning"] == first.message["reasoning_content"]
    assert second.request["messages"][-2]["content"] == first.message["content"]
    assert result["text"] == second.message["content"]


@ways("structured")
def test_client__structured_output__is_the_object_that_the_provider_gave(
    result: dict[str, Any], exchanges: list[Exchange]
) -> None:
    assert exchanges
    for exchange in exchanges:
        assert result["value"] == given_value(exchange)


@ways("embedded")
def test_client__embeddings__are_the_vectors_that_the_provider_gave(
    result: dict[str, Any], exchanges: list[Exchange]
) -> None:
    (exchange,) = exchanges
    assert len(exchange.request["input"]) == len(result["vectors"]) == 2
    for vector, given in zip(result["vectors"], exchange.vectors, strict=True):
        assert vector == pytest.approx(given, abs=1e-6)


@ways("listed")
def test_client__models__are_those_that_can_be_called(result: dict[str, Any]) -> None:
    assert result["name"] == "sandbox/echo"
    assert "sandbox/echo" in result["names"]


@ways(*REFUSALS)
def test_client__refusal__is_its_own_error_and_names_what_was_wrong(
    client: Client, case: str, result: dict[str, Any], exchanges: list[Exchange]
) -> None:
    assert exchanges == []
    assert result["error"].endswith(client.errors[REFUSALS.index(case)]), result
    assert result["status"] == STATUSES[case]
    names = {"bad_key": "key", "unknown_model": "nobody/serves-this", "bad_field": client.bad_field}
    assert names[case] in result["message"]


def given_value(exchange: Exchange) -> Any:
    calls = exchange.calls
    return calls[0][2] if calls else json.loads(exchange.message["content"])
