"""Message batches through Anthropic's SDK: what it sends reaches the vendor, and what the vendor says comes back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import anthropic
import pytest

from tests.fakes.batches.anthropic import KEY, AnthropicBatches, usage_of
from tests.gateway.batches.conftest import CLAUDE, anthropic_client, priced, total
from tests.gateway.batches.lines import message_request
from tests.gateway.service import Gateway

REQUESTS: list[Any] = [message_request(name) for name in ("a", "b", "errored-c", "expired-d", "canceled-e")]
TYPES = ["succeeded", "succeeded", "errored", "expired", "canceled"]


@pytest.fixture(params=["direct", "gateway"])
def client(request: pytest.FixtureRequest, claude: AnthropicBatches, messages: Gateway) -> anthropic.Anthropic:
    """The SDK at the vendor itself, which shows that the fake is one, and at the gateway."""
    if request.param == "direct":
        return anthropic.Anthropic(base_url=claude.url, api_key=KEY, max_retries=0)
    return anthropic_client(messages)


def test_batch__from_creation_to_deletion__is_the_vendors(
    client: anthropic.Anthropic, claude: AnthropicBatches
) -> None:
    batch = client.messages.batches.create(requests=REQUESTS)
    assert batch.processing_status == "in_progress" and batch.results_url is None
    claude.finish(batch.id)

    ended = client.messages.batches.retrieve(batch.id)
    assert ended.processing_status == "ended"
    assert [one.id for one in client.messages.batches.list()] == [batch.id]
    assert claude.requests[batch.id] == REQUESTS
    assert client.messages.batches.delete(batch.id).id == batch.id
    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.retrieve(batch.id)


def test_batch__that_runs__is_cancelled_and_not_deleted(client: anthropic.Anthropic) -> None:
    batch = client.messages.batches.create(requests=REQUESTS)

    with pytest.raises(anthropic.BadRequestError, match="has not ended"):
        client.messages.batches.delete(batch.id)
    assert client.messages.batches.cancel(batch.id).processing_status == "canceling"


def test_results__that_the_sdk_follows__come_through_the_gateway_with_their_costs(
    messages: Gateway, claude: AnthropicBatches
) -> None:
    client = anthropic_client(messages)
    batch = client.messages.batches.create(requests=REQUESTS)
    claude.finish(batch.id)

    found = list(client.messages.batches.results(batch.id))

    assert [one.result.type for one in found] == TYPES
    records = {record.attributes["custom_id"]: record for record in priced(messages, 5)}
    for number, name in enumerate("ab"):
        record, usage = records[name], usage_of(number)
        tokens = {"0.5003": usage["input_tokens"], "0.0501": 20, "0.6251": 10, "2.5007": usage["output_tokens"]}
        assert Decimal(record.cost_usd) == sum(Decimal(rate) * count / 1_000_000 for rate, count in tokens.items())
        assert record.prompt_tokens == usage["input_tokens"] + 30
        assert (record.cache_read_tokens, record.cache_write_tokens) == (20, 10)
        assert (record.provider, record.model, record.operation) == ("anthropic", CLAUDE, "messages")
        assert (record.outcome, record.finish_reason, record.attributes["batch_id"]) == (
            "success",
            "end_turn",
            batch.id,
        )
    outcomes = {name: (one.outcome, one.status_code, one.error_code) for name, one in records.items()}
    assert outcomes["errored-c"] == ("error", 400, "invalid_request_error")
    assert outcomes["expired-d"] == ("error", 504, "expired")
    assert outcomes["canceled-e"] == ("cancelled", 499, "canceled")
    assert total([records[name] for name in ("errored-c", "expired-d", "canceled-e")]) == 0


def test_results__of_a_batch_that_runs__are_the_vendors_404(messages: Gateway) -> None:
    batch = anthropic_client(messages).messages.batches.create(requests=REQUESTS)

    answer = messages.client.get(f"/api/gateway/v1/messages/batches/{batch.id}/results", headers=messages.headers)

    assert (answer.status_code, answer.json()["type"]) == (404, "error")
    assert answer.json()["error"]["type"] == "not_found_error"
    assert "no results yet" in answer.json()["error"]["message"]
