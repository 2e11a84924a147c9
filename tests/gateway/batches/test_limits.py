"""Batches under the limits of their project and key."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.fakes.batches.openai import OpenAIBatches
from tests.gateway.batches.conftest import openai_client, priced
from tests.gateway.batches.lines import jsonl, line
from tests.gateway.service import Gateway


def test_budget__that_results_use_up__refuses_new_batches_and_not_their_results(
    files: Gateway, vendor: OpenAIBatches
) -> None:
    files.service.set_routing(files.project_id, monthly_budget_usd="0.00001", budget_hard_stop=True)
    client = openai_client(files)
    content = jsonl(*(line(f"line-{number}") for number in range(20)))
    file = client.files.create(file=("in.jsonl", content), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    vendor.finish(batch.id)
    results = str(client.batches.retrieve(batch.id).output_file_id)
    client.files.content(results)
    priced(files, 20)

    def ask() -> Any:
        new = {"input_file_id": file.id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
        return files.client.post("/api/gateway/v1/batches", json=new, headers=files.headers)

    refused = files.service.until(ask, lambda answer: answer.status_code == 429)

    assert refused.json()["error"]["code"] == "monthly_budget_exceeded"
    assert client.files.content(results).content == vendor.contents[results]


def test_key__that_may_not_call_the_model__is_refused_by_the_line(files: Gateway) -> None:
    made = files.manage("POST", "keys", {"name": "narrow", "scopes": ["gateway"], "allowed_models": ["o3*"]})
    assert made.status_code == 201, made.text

    with pytest.raises(
        openai.PermissionDeniedError, match=r"line 1: body\.model: this API key may not call"
    ) as refused:
        openai_client(files, made.json()["key"]).files.create(file=("in.jsonl", jsonl(line("a"))), purpose="batch")
    assert refused.value.code == "model_not_allowed"


def test_results__of_a_key_that_has_left_its_team__are_paid_by_the_team_that_it_had(
    files: Gateway, vendor: OpenAIBatches
) -> None:
    team = files.manage("POST", "teams", {"name": "Search", "monthly_budget_usd": 1000}).json()["id"]
    made = files.manage("POST", "keys", {"name": "batcher", "scopes": ["gateway"], "team_id": team}).json()
    client = openai_client(files, made["key"])
    file = client.files.create(file=("in.jsonl", jsonl(line("one"), line("two"))), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    vendor.finish(batch.id)
    files.manage("PATCH", f"keys/{made['id']}", {"team_id": None})
    client.files.content(str(client.batches.retrieve(batch.id).output_file_id))

    lines = priced(files, 2)

    assert {(one.team_id, one.api_key_id) for one in lines} == {(team, made["id"])}
