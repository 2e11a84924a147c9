"""Every call of files and batches succeeds over HTTP, and answers as the OpenAPI document says."""

from __future__ import annotations

from typing import Any

from tests.fakes.batches.anthropic import AnthropicBatches
from tests.fakes.batches.openai import OpenAIBatches
from tests.gateway.batches.lines import jsonl, line, message_request
from tests.gateway.service import Gateway
from tests.openapi.test_gateway_conformance import OF_STORED_OBJECTS


def call(gateway: Gateway, method: str, path: str, **sent: Any) -> Any:
    """Returns a successful answer; the client has looked it up in the document."""
    headers = {"authorization": f"Bearer {gateway.key}"}
    answer = gateway.client.request(method, f"/api/gateway/v1/{path}", headers=headers, **sent)
    assert answer.status_code == 200, answer.text
    return answer


def test_calls__made_in_order__answer_as_described(
    files: Gateway, vendor: OpenAIBatches, messages: Gateway, claude: AnthropicBatches
) -> None:
    upload = {"files": {"file": ("in.jsonl", jsonl(line("a")))}, "data": {"purpose": "batch"}}
    file_id = call(files, "POST", "files", **upload).json()["id"]
    new = {"input_file_id": file_id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    first, second = (call(files, "POST", "batches", json=new).json()["id"] for _ in range(2))
    assert call(files, "POST", f"batches/{first}/cancel").json()["status"] == "cancelling"
    vendor.finish(second)
    results = call(files, "GET", f"batches/{second}").json()["output_file_id"]
    assert len(call(files, "GET", "batches", params={"limit": "1"}).json()["data"]) == 1
    assert call(files, "GET", f"files/{results}/content").content == vendor.contents[results]
    assert {one["id"] for one in call(files, "GET", "files").json()["data"]} == {file_id, results}
    assert call(files, "GET", f"files/{results}").json()["purpose"] == "batch_output"
    assert call(files, "DELETE", f"files/{file_id}").json()["deleted"]

    path = "messages/batches"
    ids = [call(messages, "POST", path, json={"requests": [message_request("a")]}).json()["id"] for _ in range(2)]
    call(messages, "POST", f"{path}/{ids[0]}/cancel")
    claude.finish(ids[1])
    shown = call(messages, "GET", f"{path}/{ids[1]}").json()
    assert shown["results_url"] == f"{messages.service.base_url()}/api/gateway/v1/{path}/{ids[1]}/results"
    assert call(messages, "GET", f"{path}/{ids[1]}/results").content == claude.results[ids[1]]
    page = call(messages, "GET", path, params={"after_id": ids[1]}).json()
    assert ([one["id"] for one in page["data"]], page["has_more"]) == ([ids[0]], False)
    assert call(messages, "DELETE", f"{path}/{ids[1]}").json()["id"] == ids[1]

    assert len(OF_STORED_OBJECTS) == 15, "another call has to be made above"
