"""`POST /api/llm/playground` with `stream`: the gateway's events, then the result."""

from __future__ import annotations

import json
from typing import Any

from analytics.request_log.record import RequestRecord
from tests.fakes.scripted import ROLE, Step, answer, chunk, endless, hang, status, stream
from tests.gateway.conftest import Scripted
from tests.gateway.playground.calls import MESSAGES, ask
from tests.gateway.service import PRICED_MODEL, Gateway
from tests.gateway.spooled import spooled_entries
from tests.gateway.wire import Stream, assert_closing_chunk, read_stream
from tests.waiting import TIMEOUT_SECONDS


def taken_apart(raw: bytes) -> tuple[Stream, dict[str, Any]]:
    """Returns the stream as the gateway makes it, and the result behind it."""
    streamed, event, result = raw.partition(b"event: result\n")
    assert event
    assert result.startswith(b"data: {")
    assert result.endswith(b"}\n\n")
    return read_stream(streamed), json.loads(result[6:])


def records_of(gateway: Gateway) -> list[RequestRecord]:
    spooled = spooled_entries(gateway.service.var / "spool")
    return [entry.record for entry in spooled if entry.record.project_id == gateway.project_id]


def played(scripted: Scripted, step: Step, **fields: Any) -> tuple[Stream, dict[str, Any]]:
    gateway, _ = scripted(step)
    gateway.service.set_routing(gateway.project_id, retry_enabled=False)
    response = ask(gateway, stream=True, **fields)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    return taken_apart(response.content)


def test_stream__answered__is_the_gateways_stream_and_the_result(scripted: Scripted) -> None:
    found, result = played(scripted, answer("Paris is it"), model=f"openai/{PRICED_MODEL}")
    assert found.text == "Paris is it"
    assert_closing_chunk(found)
    assert result["response"] == {"role": "assistant", "content": "Paris is it"}
    assert result["ttft_ms"] <= result["latency_ms"] + 1
    assert result["cost_usd"] == 0.000078
    assert result["finish_reason"] == "stop"
    assert result["error"] is None


def test_stream__no_provider_serves_the_model__error_is_an_event_and_in_the_result(scripted: Scripted) -> None:
    found, result = played(scripted, answer(), model="nobody-serves-this")
    assert [error["code"] for error in found.errors] == ["model_not_found"]
    assert result["error"]["code"] == "model_not_found"
    assert result["response"] is None


def test_stream__fails_before_output__error_is_an_event_and_in_the_result(scripted: Scripted) -> None:
    found, result = played(scripted, status(503))
    assert [error["code"] for error in found.errors] == ["provider_unavailable"]
    assert result["error"]["code"] == "provider_unavailable"


def test_stream__breaks_after_output__result_has_what_came(scripted: Scripted) -> None:
    found, result = played(scripted, stream(ROLE, chunk({"content": "Par"}), end="reset"))
    assert found.text == "Par"
    assert len(found.errors) == 1
    assert result["response"]["content"] == "Par"
    assert result["error"]["code"] == "provider_unavailable"
    assert result["usage"]["estimated"] is True


def test_stream__client_leaves__hangs_up_upstream_and_says_cancelled(scripted: Scripted) -> None:
    gateway, script = scripted(endless())
    url = f"{gateway.service.base_url()}/api/llm/playground"
    headers = {"authorization": f"Bearer {gateway.key}", "x-project-id": gateway.project_id}
    content = {"model": "openai/gpt-4o", "messages": MESSAGES, "stream": True}
    seen = b""
    with gateway.client.stream("POST", url, json=content, headers=headers) as response:
        for piece in response.iter_bytes():
            seen += piece
            if b"word" in seen:
                break
    (received,) = script.received
    assert received.gone.wait(TIMEOUT_SECONDS)
    (record,) = gateway.service.until(lambda: records_of(gateway), bool)
    assert (record.source, record.outcome, record.tokens_estimated) == ("playground", "cancelled", True)
    assert record.completion_tokens > 0


def test_stream__client_leaves_before_output__hangs_up_upstream(scripted: Scripted) -> None:
    gateway, script = scripted(hang)
    url = f"{gateway.service.base_url()}/api/llm/playground"
    headers = {"authorization": f"Bearer {gateway.key}", "x-project-id": gateway.project_id}
    content = {"model": "openai/gpt-4o", "messages": MESSAGES, "stream": True}
    with gateway.client.stream("POST", url, json=content, headers=headers) as response:
        assert response.status_code == 200
        script.wait_for(1)
    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
