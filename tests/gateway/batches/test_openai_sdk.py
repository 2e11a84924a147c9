"""Files and batches through OpenAI's SDK: what it sends reaches the vendor, and what the vendor says comes back."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import openai
import pytest

from tests.fakes.batches.openai import KEY, OpenAIBatches, usage_of
from tests.gateway.batches.conftest import MODEL, openai_client, priced, total
from tests.gateway.batches.lines import jsonl, line
from tests.gateway.service import Gateway

LINES = jsonl(line("a"), line("b"), line("bad-c"))
# Half of the prices of `PRICES`, for one token.
INPUT, CACHED, OUTPUT = (Decimal(price) / 2 / 1_000_000 for price in ("0.1507", "0.0751", "0.6013"))


@pytest.fixture(params=["direct", "gateway"])
def client(request: pytest.FixtureRequest, vendor: OpenAIBatches, files: Gateway) -> openai.OpenAI:
    """The SDK at the vendor itself, which shows that the fake is one, and at the gateway."""
    if request.param == "direct":
        return openai.OpenAI(base_url=vendor.base_url, api_key=KEY, max_retries=0)
    return openai_client(files)


def start(client: openai.OpenAI, content: bytes = LINES, **options: Any) -> openai.types.Batch:
    file = client.files.create(file=("in.jsonl", content), purpose="batch")
    return client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", **options
    )


def test_batch__from_upload_to_results__is_the_vendors(client: openai.OpenAI, vendor: OpenAIBatches) -> None:
    batch = start(client, metadata={"job": "nightly"})
    vendor.finish(batch.id)

    ended = client.batches.retrieve(batch.id)
    assert (ended.status, ended.metadata) == ("completed", {"job": "nightly"})
    assert ended.output_file_id is not None and ended.error_file_id is not None
    results = client.files.content(ended.output_file_id)
    assert results.content == vendor.contents[ended.output_file_id]
    assert client.files.content(ended.error_file_id).content == vendor.contents[ended.error_file_id]
    assert vendor.contents[batch.input_file_id] == LINES


def test_files__are_listed_shown_and_deleted__as_the_vendor_does(client: openai.OpenAI) -> None:
    file = client.files.create(file=("notes.txt", b"some text"), purpose="user_data")

    assert [one.id for one in client.files.list()] == [file.id]
    assert client.files.retrieve(file.id) == file
    assert client.files.content(file.id).content == b"some text"
    assert client.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)


def test_batches__are_listed_and_cancelled__as_the_vendor_does(client: openai.OpenAI) -> None:
    first, second = start(client), start(client)

    assert {one.id for one in client.batches.list()} == {first.id, second.id}
    assert client.batches.cancel(first.id).status == "cancelling"
    assert {one.id: one.status for one in client.batches.list()}[first.id] == "cancelling"


def test_results__that_are_fetched__are_records_with_costs_to_the_last_digit(
    files: Gateway, vendor: OpenAIBatches
) -> None:
    client = openai_client(files)
    batch = start(client, extra_headers={"x-svc-user-id": "ann", "x-svc-session-id": "night"})
    vendor.finish(batch.id)
    ended = client.batches.retrieve(batch.id)

    client.files.content(str(ended.output_file_id))
    client.files.content(str(ended.error_file_id))

    records = {record.attributes["custom_id"]: record for record in priced(files, 3)}
    for number, name in enumerate("ab"):
        record, usage = records[name], usage_of(number)
        fresh = usage["prompt_tokens"] - 40
        cost = fresh * INPUT + 40 * CACHED + usage["completion_tokens"] * OUTPUT
        assert Decimal(record.cost_usd) == sum(
            (part.quantize(Decimal("0.0000000001")) for part in (fresh * INPUT, 40 * CACHED)),
            (usage["completion_tokens"] * OUTPUT).quantize(Decimal("0.0000000001")),
        )
        assert abs(Decimal(record.cost_usd) - cost) < Decimal("0.0000000002")
        assert (record.prompt_tokens, record.completion_tokens) == (usage["prompt_tokens"], usage["completion_tokens"])
        assert (record.cache_read_tokens, record.reasoning_tokens) == (40, 3)
        assert (record.provider, record.model, record.operation) == ("openai", MODEL, "chat")
        assert (record.outcome, record.status_code, record.finish_reason) == ("success", 200, "stop")
        assert record.attributes["batch_id"] == batch.id
        assert (record.user_id, record.session_id) == ("ann", "night")
    failed = records["bad-c"]
    assert (failed.outcome, failed.status_code, failed.error_code) == ("error", 400, "invalid_value")
    assert failed.cost_known and not Decimal(failed.cost_usd)


def test_calls__of_a_batch__are_records_that_cost_nothing(files: Gateway, vendor: OpenAIBatches) -> None:
    client = openai_client(files)
    uploaded = client.files.with_raw_response.create(file=("in.jsonl", LINES), purpose="batch")
    created = client.batches.with_raw_response.create(
        input_file_id=uploaded.parse().id, endpoint="/v1/chat/completions", completion_window="24h"
    )

    upload, creation = files.record(uploaded.headers["x-request-id"]), files.record(created.headers["x-request-id"])
    assert (upload.operation, creation.operation) == ("files", "batches")
    assert upload.provider == "openai" and upload.cost_known and not upload.prompt_tokens
    assert not Decimal(upload.cost_usd)
    (entry,) = files.service.entries(creation.request_id)
    assert json.loads(entry.response)["id"] == created.parse().id
    assert created.headers["x-svc-provider"] == "openai"


def test_results__of_embeddings__are_priced_by_their_own_tokens(files: Gateway, vendor: OpenAIBatches) -> None:
    client = openai_client(files)
    body = {"model": "text-embedding-3-small", "input": "hello"}
    file = client.files.create(file=("in.jsonl", jsonl(line("a", url="/v1/embeddings", body=body))), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h")
    vendor.finish(batch.id)

    client.files.content(str(client.batches.retrieve(batch.id).output_file_id))

    (record,) = priced(files, 1)
    assert (record.operation, record.prompt_tokens) == ("embeddings", 7)
    assert total([record]) == Decimal("0.02") / 2 * 7 / 1_000_000
