"""`POST /api/llm/playground/compare`: several models side by side."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.scripted import answer, hang, reset, status
from tests.gateway.conftest import Routed, Scripted
from tests.gateway.playground.calls import MESSAGES, compare, results
from tests.gateway.playground.conftest import COMPARE_SECONDS
from tests.gateway.service import PRICED_MODEL
from tests.waiting import TIMEOUT_SECONDS

PRICED = f"openai/{PRICED_MODEL}"
COST = 0.000078


def test_compare__one_down_one_slow_three_good__three_results_and_two_errors(routed: Routed) -> None:
    gateway, scripts = routed(
        {"retry_enabled": False},
        openai=[answer("one", delay=0.3)],
        groq=[answer("two")],
        deepseek=[answer("three", delay=0.2)],
        xai=[reset],
        together=[hang],
    )
    models = ["openai/gpt-4o", "groq/llama-3.3-70b-versatile", "deepseek/deepseek-chat", "xai/grok-4", "together/m"]
    response = compare(gateway, *models, session_id="side-by-side")
    found = results(response)
    assert list(found) == models
    assert [result["response"] and result["response"]["content"] for result in found.values()] == [
        "one",
        "two",
        "three",
        None,
        None,
    ]
    assert [result["error"] and result["error"]["code"] for result in found.values()] == [
        None,
        None,
        None,
        "provider_unavailable",
        "provider_timeout",
    ]
    answered: dict[str, float] = {model: found[model]["latency_ms"] for model in models[:3]}
    assert response.json()["fastest"] == min(answered, key=answered.__getitem__)
    assert answered[models[0]] >= 300 and answered[models[2]] >= 200
    late = found[models[4]]
    assert late["latency_ms"] >= COMPARE_SECONDS * 500
    assert scripts["together"].received[0].gone.wait(TIMEOUT_SECONDS)
    for result in found.values():
        record = gateway.record(result["request_id"])
        assert (record.source, record.session_id) == ("playground", "side-by-side")
    assert gateway.record(late["request_id"]).outcome == "cancelled"


def test_compare__priced_models__says_which_is_cheapest(routed: Routed, scripted: Scripted) -> None:
    gateway, _ = routed({"retry_enabled": False}, openai=[answer()], groq=[answer()], xai=[status(500)])
    gateway.service.seeder.call("set_price", provider="groq", model="cheap-1", input="1", output="1")
    gateway.service.until(lambda: results(compare(gateway, "groq/cheap-1")), lambda r: r["groq/cheap-1"]["cost_usd"])
    response = compare(gateway, PRICED, "groq/cheap-1", "openai/unpriced-1", "xai/grok-4").json()
    assert response["cheapest"] == "groq/cheap-1"
    cheap = 18 / 1_000_000
    assert response["total_cost_usd"] == round(COST + cheap, 10)
    assert response["cost_comparison"] == [
        {
            "model": PRICED,
            "cost_usd": COST,
            "total_tokens": 18,
            "tokens_per_dollar": round(18 / COST, 2),
            "times_cheapest": round(COST / cheap, 4),
        },
        {
            "model": "groq/cheap-1",
            "cost_usd": cheap,
            "total_tokens": 18,
            "tokens_per_dollar": 1_000_000.0,
            "times_cheapest": 1.0,
        },
        {
            "model": "openai/unpriced-1",
            "cost_usd": None,
            "total_tokens": 18,
            "tokens_per_dollar": None,
            "times_cheapest": None,
        },
        {
            "model": "xai/grok-4",
            "cost_usd": response["cost_comparison"][3]["cost_usd"],
            "total_tokens": 0,
            "tokens_per_dollar": None,
            "times_cheapest": None,
        },
    ]


def test_compare__all_fail__is_200_with_their_errors(routed: Routed) -> None:
    gateway, _ = routed({"retry_enabled": False}, openai=[status(500)])
    response = compare(gateway, "openai/gpt-4o", "nobody-serves-this")
    found = results(response)
    assert [result["error"]["code"] for result in found.values()] == ["provider_unavailable", "model_not_found"]
    assert (response.json()["fastest"], response.json()["cheapest"]) == (None, None)


def test_compare__several_models__are_called_at_the_same_time(routed: Routed) -> None:
    gateway, scripts = routed({}, openai=[hang], groq=[hang], xai=[hang])
    compare(gateway, "openai/gpt-4o", "groq/llama-3.3-70b-versatile", "xai/grok-4")
    received = [script.received[0] for script in scripts.values()]
    assert all(request.gone.wait(TIMEOUT_SECONDS) for request in received)
    assert max(request.arrived_at for request in received) < min(request.gone_at or 0 for request in received)


@pytest.mark.parametrize(
    "models",
    [["a", "a"], None],
    ids=["twice", "null"],
)
def test_compare__bad_models__are_400_that_name_the_field(scripted: Scripted, models: Any) -> None:
    gateway, script = scripted(answer())
    content = {"messages": MESSAGES, "compare_models": models}
    response = gateway.manage("POST", "playground/compare", content)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["message"].startswith("compare_models")
    assert script.received == []


def test_compare__limit_leaves_room_for_some__the_others_are_refused(routed: Routed) -> None:
    gateway, _ = routed({"rate_limit_enabled": True, "rate_limit_rpm": 2}, openai=[answer()])
    models = [f"openai/m-{number}" for number in range(5)]

    def codes() -> list[str]:
        found = results(compare(gateway, *models))
        return sorted(result["error"]["code"] if result["error"] else "" for result in found.values())

    # A new minute may begin while the five are admitted, and settings take a moment to reach the worker.
    found = gateway.service.until(codes, lambda found: "requests_per_minute" in found)
    assert found.count("requests_per_minute") >= 1
