"""What the gateway refuses before anything reaches a vendor, by the line, in the client's own form."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from typing import Any

import openai
import pytest

from tests.fakes.batches.anthropic import AnthropicBatches
from tests.fakes.batches.openai import KEY, OpenAIBatches
from tests.gateway.batches.conftest import MODEL, openai_client
from tests.gateway.batches.lines import jsonl, line, message_request
from tests.gateway.service import Gateway, GatewayService
from tests.tables.cases import tabled


@tabled
def test_file__with_a_broken_line__is_refused_by_its_number(
    files: Gateway, vendor: OpenAIBatches, broken: Any, message: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        openai_client(files).files.create(file=("in.jsonl", jsonl(line("a"), broken)), purpose="batch")

    error: Any = refused.value.body
    assert error["message"].startswith(message)
    assert error["type"] == "invalid_request_error"
    assert not vendor.files


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\n \n", "file: it has no line"), (b'{"custom_id": "\xff"}\n', "line 1: not valid JSON")],
)
def test_file__without_a_readable_line__is_refused(files: Gateway, content: bytes, message: str) -> None:
    with pytest.raises(openai.BadRequestError, match=message):
        openai_client(files).files.create(file=("in.jsonl", content), purpose="batch")


@tabled
def test_upload__that_is_no_form_with_a_file__is_refused(
    files: Gateway, body: bytes, content_type: str, message: str
) -> None:
    headers = {**files.headers, "content-type": content_type}

    answer = files.client.post("/api/gateway/v1/files", content=body, headers=headers)

    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert message in answer.json()["error"]["message"]


@tabled
def test_message_batch__with_a_broken_request__is_refused_by_its_place(
    messages: Gateway, claude: AnthropicBatches, requests: list[Any], message: str
) -> None:
    answer = messages.client.post(
        "/api/gateway/v1/messages/batches",
        content=json.dumps({"requests": requests}),
        headers={**messages.headers, "anthropic-version": "2023-06-01"},
    )

    assert (answer.status_code, answer.json()["type"]) == (400, "error")
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.json()["error"]["message"].startswith(message)
    assert not claude.batches


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"requests": 3}',
        b'{"requests": [{"custom_id": "a", "note": "\xff", "params": {"model": "m"}}]}',
    ],
)
def test_message_batch__that_is_no_object_of_requests__is_refused(messages: Gateway, body: bytes) -> None:
    answer = messages.client.post("/api/gateway/v1/messages/batches", content=body, headers=messages.headers)

    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_objects__of_another_project__are_not_found(
    service: GatewayService, files: Gateway, vendor: OpenAIBatches, messages: Gateway
) -> None:
    """Both projects have the same account at the vendor, which would show them everything."""
    client = openai_client(files)
    file = client.files.create(file=("in.jsonl", jsonl(line("a"))), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    other = service.new_project(base_urls={"openai": vendor.base_url}, secret=KEY)
    stranger = openai_client(other)

    assert not list(stranger.files.list()) and not list(stranger.batches.list())
    for ask in (
        lambda: stranger.files.retrieve(file.id),
        lambda: stranger.files.content(file.id),
        lambda: stranger.files.delete(file.id),
        lambda: stranger.batches.retrieve(batch.id),
        lambda: stranger.batches.cancel(batch.id),
        lambda: stranger.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        ),
    ):
        with pytest.raises(openai.NotFoundError):
            ask()
    assert vendor.batches[batch.id]["status"] == "in_progress" and file.id in vendor.files


def test_batch__that_does_not_fit_its_file__is_refused(files: Gateway, vendor: OpenAIBatches) -> None:
    client = openai_client(files)
    file = client.files.create(file=("in.jsonl", jsonl(line("a"))), purpose="batch")
    notes = client.files.create(file=("notes.txt", b"text"), purpose="user_data")

    with pytest.raises(openai.BadRequestError, match="endpoint: '/v1/embeddings' differs from the url"):
        client.batches.create(input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h")
    with pytest.raises(openai.BadRequestError, match="input_file_id: a file with the purpose 'user_data'"):
        client.batches.create(input_file_id=notes.id, endpoint="/v1/chat/completions", completion_window="24h")
    with pytest.raises(openai.BadRequestError, match="prompt_config: managed prompts and routing do not apply"):
        client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            extra_body={"prompt_config": "p"},
        )
    assert not vendor.batches


def test_vendors_refusal__is_the_clients(files: Gateway) -> None:
    client = openai_client(files)
    file = client.files.create(file=("in.jsonl", jsonl(line("a"))), purpose="batch")

    with pytest.raises(openai.BadRequestError, match="only '24h' is supported"):
        client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="1h",  # type: ignore[arg-type]  # the vendor refuses it
        )


def test_line__that_a_guardrail_refuses__is_named(files: Gateway, vendor: OpenAIBatches) -> None:
    files.service.set_routing(
        files.project_id, guardrails={"trust_mode": "enforce", "blocked_input_topics": ["dragons"]}
    )
    told = line("b", body={"model": MODEL, "messages": [{"role": "user", "content": "all about dragons"}]})

    refused = files.service.until(
        lambda: files.client.post(
            "/api/gateway/v1/files",
            files={"file": ("in.jsonl", jsonl(line("a"), told))},
            data={"purpose": "batch"},
            headers={"authorization": f"Bearer {files.key}"},
        ),
        lambda answer: answer.status_code == 400,
    )

    assert (refused.json()["error"]["type"], refused.json()["error"]["code"]) == ("guardrail_error", "blocked_topic")
    assert refused.json()["error"]["message"].startswith("line 2: ")


def test_request__that_a_guardrail_refuses__is_named(messages: Gateway, claude: AnthropicBatches) -> None:
    messages.service.set_routing(
        messages.project_id, guardrails={"trust_mode": "enforce", "blocked_input_topics": ["dragons"]}
    )
    told = message_request("b", messages=[{"role": "user", "content": "all about dragons"}])

    refused = messages.service.until(
        lambda: messages.client.post(
            "/api/gateway/v1/messages/batches",
            json={"requests": [message_request("a"), told]},
            headers=messages.headers,
        ),
        lambda answer: answer.status_code == 400,
    )

    assert refused.json()["error"]["message"].startswith("requests[1]: ")


def test_project__without_a_provider_that_has_batches__is_told_so(messages: Gateway, files: Gateway) -> None:
    with pytest.raises(openai.NotFoundError, match="No enabled provider of this project has this API"):
        openai_client(messages).files.create(file=("in.jsonl", jsonl(line("a"))), purpose="batch")
    answer = files.client.get("/api/gateway/v1/messages/batches/b1", headers=files.headers)
    assert (answer.status_code, answer.json()["type"]) == (404, "error")


def test_provider__that_the_header_names__has_to_have_the_api(files: Gateway) -> None:
    client = openai_client(files)
    with pytest.raises(openai.BadRequestError, match="x-svc-provider: no enabled integration 'groq' has this API"):
        client.files.create(
            file=("in.jsonl", jsonl(line("a"))), purpose="batch", extra_headers={"x-svc-provider": "groq"}
        )


@pytest.mark.parametrize(
    "path", ["files", "batches", "files/x/content", "messages/batches", "messages/batches/x/cancel"]
)
def test_call__without_a_key__is_refused(files: Gateway, path: str) -> None:
    answer = files.client.request("POST" if "cancel" in path else "GET", f"/api/gateway/v1/{path}")

    assert answer.status_code == 401


def test_method__that_a_path_does_not_have__is_named(files: Gateway) -> None:
    answer = files.client.put("/api/gateway/v1/files/x", headers=files.headers)

    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, DELETE")


def test_file__with_a_byte_order_mark__is_taken_and_reaches_the_vendor_without_it(
    files: Gateway, vendor: OpenAIBatches
) -> None:
    content = jsonl(line("a"), line("b"))
    file = openai_client(files).files.create(file=("in.jsonl", BOM_UTF8 + content), purpose="batch")

    assert vendor.contents[file.id].strip() == content.strip()
