"""The source of the cost in a record: the provider's own statement, whole and streamed, or a price and its tier."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes import scripted as play
from tests.fakes.scripted import ScriptedServer, chunk
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import body
from tests.integrations.pricing.catalogs import catalog_b, model_a

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
STATED = {**USAGE, "cost": 0.0076509169000000005}
UNKNOWN, TIERED = "vendor/unheard-of", "gpt-tiered-1"


def gateway_to(pair: GatewayService, upstream: ScriptedServer, name: str, provider: str, *steps: play.Step) -> Gateway:
    upstream.play(name, *steps)
    return pair.new_project(base_urls={provider: upstream.base_url(name)})


@pytest.mark.parametrize("stream", [False, True])
def test_record__cost_stated__is_it_and_says_so_also_without_a_price(
    pair: GatewayService, upstream: ScriptedServer, stream: bool
) -> None:
    events = [
        chunk({"role": "assistant", "content": "hi"}),
        chunk({}, "stop"),
        chunk(None, usage=STATED),
        b"data: [DONE]\n\n",
    ]
    step = play.stream(*events) if stream else play.answer("hi", usage=STATED)
    gateway = gateway_to(pair, upstream, f"stated-{stream}", "openrouter", step)

    response = gateway.post(body(model=f"openrouter/{UNKNOWN}", stream=stream))

    assert response.status_code == 200, response.text
    record = gateway.record(response)
    assert (record.cost_known, record.cost_usd, record.cost_source) == (True, "0.0076509169", "provider")
    assert record.cost_other_usd == record.cost_usd
    assert record.attempts[-1].cost_usd == record.cost_usd
    # The headers of a stream leave before the provider states its cost.
    assert ("no price is known" in response.headers.get("x-svc-warning", "")) is stream


def test_record__stream_cut_behind_what_was_stated__not_the_statement(
    pair: GatewayService, upstream: ScriptedServer
) -> None:
    """Perplexity states the cost so far with every chunk."""
    so_far = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6, "cost": {"total_cost": 0.005}}
    pieces = [chunk({"role": "assistant", "content": "word"}, usage=so_far), chunk({"content": " word" * 400})]
    gateway = gateway_to(pair, upstream, "cut", "perplexity", play.stream(*pieces, end="reset"))

    response = gateway.post(body(model=f"perplexity/{UNKNOWN}", stream=True))

    record = gateway.record(response)
    assert record.tokens_estimated
    assert (record.cost_known, record.cost_source) == (False, "")


def test_record__tier_of_the_answer__priced_by_it_from_the_catalog(
    pair: GatewayService, upstream: ScriptedServer, tmp_path: Path
) -> None:
    listed = model_a(2, 10) | {"input_cost_per_token_flex": 1e-6, "output_cost_per_token_flex": 5e-6}
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text(json.dumps({TIERED: listed}))
    second.write_text(json.dumps(catalog_b(groq={"llama-synced-1": (1, 1)})))
    assert pair.manage("sync_pricing", "--catalog-a", str(first), "--catalog-b", str(second)).startswith("success")
    gateway = gateway_to(pair, upstream, "tiered", "openai", play.answer("hi", usage=USAGE, service_tier="flex"))

    def cost() -> tuple[str, str]:
        record = gateway.record(gateway.post(body(model=TIERED)))
        return record.cost_usd, record.cost_source

    assert pair.until(cost, lambda found: bool(found[0])) == ("0.0015000000", "catalog_a")
    gateway.manage("PUT", f"pricing/openai/{TIERED}", {"input_cost_per_1m": "3", "output_cost_per_1m": "30"})
    assert pair.until(cost, lambda found: found[1] == "manual") == ("0.0060000000", "manual")
