"""What Anthropic bills beside the counts of an answer (`usage.iterations`): whole, streamed, in batches."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, get_args

import pytest
from anthropic.types.beta.beta_iterations_usage import BetaIterationsUsageItem

from integrations.pricing.answered import is_other_model
from integrations.pricing.batch_price import batch_cost
from integrations.pricing.cost import Price, known_cost
from integrations.providers.anthropic.adapter import ADAPTER
from integrations.providers.anthropic.batches import read_result
from integrations.providers.anthropic.forwarding import FORWARDERS
from integrations.providers.base import ChatRequest
from integrations.providers.usage import Usage
from tests.tables.cases import stored, tabled

PRICES = {
    "claude-haiku-4-5": Price(Decimal(1), Decimal(5)),
    "claude-opus-4-8": Price(Decimal(5), Decimal(25)),
    "claude-fable-5": Price(Decimal(10), Decimal(50)),
}
Json = dict[str, Any]


def tokens(kind: str, prompt: int, completion: int, model: str | None = None) -> Json:
    named = {} if model is None else {"model": model}
    cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"type": kind, "input_tokens": prompt, "output_tokens": completion, **cached, **named}


def message(model: str, prompt: int, completion: int, *iterations: Json, content: Json | None = None) -> Json:
    counts = {"input_tokens": prompt, "output_tokens": completion, "iterations": [*iterations]}
    said = [*([content] if content else []), {"type": "text", "text": "It is on its way."}]
    kind = {"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "end_turn"}
    return {**kind, "model": model, "content": said, "usage": counts}


FABLE, OPUS, HAIKU = "claude-fable-5", "claude-opus-4-8", "claude-haiku-4-5"
# The answer to a request to the first model, and what it costs.
BILLS: dict[str, tuple[str, Json, str]] = stored(__file__, "BILLS")


def as_stream(whole: Json) -> bytes:
    head = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    events: list[Json] = [{"type": "message_start", "message": head}]
    for index, block in enumerate(whole["content"]):
        events += [{"type": "content_block_start", "index": index, "content_block": block}]
        events += [{"type": "content_block_stop", "index": index}]
    events += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": whole["usage"]}]
    events += [{"type": "message_stop"}]
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def usage_of(asked: str, whole: Json, *, native: bool, stream: bool) -> Usage:
    adapter = FORWARDERS["anthropic"] if native else ADAPTER
    request = ChatRequest(asked, stream, b"{}", {})
    if not stream:
        usage = adapter.parse_response(request, json.dumps(whole).encode()).usage
    else:
        translator = adapter.stream(request)
        translator.feed(as_stream(whole))
        translator.closing()
        usage = translator.usage
    assert usage is not None
    return usage


def price_of_answer(asked: str, whole: Json) -> Price:
    return PRICES[whole["model"] if is_other_model(asked, whole["model"]) else asked]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("native", [False, True], ids=["chat", "messages"])
@pytest.mark.parametrize("name", BILLS)
def test_usage__of_several_inferences__costs_what_the_vendor_bills(name: str, native: bool, stream: bool) -> None:
    asked, whole, bill = BILLS[name]

    cost = known_cost(usage_of(asked, whole, native=native, stream=stream), price_of_answer(asked, whole), PRICES.get)

    assert cost is not None
    assert cost.total == Decimal(bill)


@pytest.mark.parametrize("name", BILLS)
def test_usage__of_several_inferences_in_a_batch__costs_half(name: str) -> None:
    asked, whole, bill = BILLS[name]
    if name == "fallback_after_words":
        whole["usage"]["iterations"][0]["model"] = FABLE  # The results of a batch do not say which model was asked.
    line = json.dumps({"custom_id": "a", "result": {"type": "succeeded", "message": whole}}).encode()

    cost = batch_cost(read_result(line).usage or Usage(), price_of_answer(asked, whole), PRICES.get)

    assert cost is not None
    assert cost.total == Decimal(bill) / 2


def test_usage__with_a_model_without_a_price__has_no_cost() -> None:
    asked, whole, _ = BILLS["advisor"]

    assert known_cost(usage_of(asked, whole, native=True, stream=False), PRICES[HAIKU], lambda model: None) is None


def test_types__of_the_vendors_package__are_all_billed() -> None:
    types = {
        get_args(kind.model_fields["type"].annotation)[0] for kind in get_args(get_args(BetaIterationsUsageItem)[0])
    }

    billed = {entry["type"] for _, whole, _ in BILLS.values() for entry in whole["usage"]["iterations"]}
    assert types <= billed
    for kind in types:
        entry = tokens(kind, 10, 10, OPUS)
        assert usage_of(OPUS, message(OPUS, 1, 1, entry, entry), native=True, stream=False).unknown_kinds == []


@tabled
def test_model__under_another_name__is_no_other_model(asked: str, answered: str) -> None:
    assert not is_other_model(asked, answered)
