"""Requests of the Messages API to Claude at other hosts: each gets what Anthropic's own SDK for this host sends."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import pytest
from anthropic.types import MessageParam

from tests.fakes.dialects.bedrock import frame
from tests.fakes.dialects.registry import FAKES
from tests.fakes.replay import body_of
from tests.fakes.scripted import Script, ScriptedServer, raw, status
from tests.fakes.upstream import Received
from tests.gateway.recorded import exchanges
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import integration_of
from tests.gateway.surfaces.test_native import ANSWER, PATH, STREAM

ASK: list[MessageParam] = [
    {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]}
]
CALL: dict[str, Any] = {"max_tokens": 64, "messages": ASK, "stop_sequences": ["END"]}
BETAS = {"anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-1m-2025-08-07"}
KNOWN = "interleaved-thinking-2025-05-14,context-1m-2025-08-07"
CLAUDE = {"google_vertex": "claude-sonnet-4-5@20250929", "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}
HOSTS = sorted(CLAUDE)

Played = Callable[..., tuple[Gateway, Script, str]]


@pytest.fixture
def played(service: GatewayService, upstream: ScriptedServer) -> Played:
    """Makes a project whose only provider follows the steps; returns it with the script and its address."""

    def make(provider: str, *steps: Any) -> tuple[Gateway, Script, str]:
        name = f"host-{len(upstream.scripts)}"
        script = upstream.play(name, *steps)
        url = upstream.base_url(name)
        return service.new_project(integrations=[integration_of(FAKES[provider], url)]), script, url

    return make


@contextmanager
def client_of(gateway: Gateway) -> Iterator[anthropic.Anthropic]:
    url = f"{gateway.service.base_url()}/api/gateway"
    with anthropic.Anthropic(api_key=gateway.key, base_url=url, max_retries=0) as made:
        yield made


def sdk_of(provider: str, url: str) -> anthropic.AnthropicBedrock | anthropic.AnthropicVertex:
    """Returns the vendor's own SDK for the host, at the address of the fake."""
    extra = FAKES[provider].credentials(url).extra
    if provider == "bedrock":
        return anthropic.AnthropicBedrock(
            base_url=url,
            aws_access_key=extra["access_key_id"],
            aws_secret_key=extra["secret_access_key"],
            aws_region=extra["region"],
            max_retries=0,
        )
    return anthropic.AnthropicVertex(
        base_url=url, access_token="token", project_id=extra["project"], region=extra["location"], max_retries=0
    )


def shape(received: Received) -> tuple[str, dict[str, Any]]:
    return received.path.partition("?")[0].replace("%3A", ":").replace("%40", "@"), json.loads(received.body)


@pytest.mark.parametrize("provider", HOSTS)
@pytest.mark.parametrize("stream", [False, True])
def test_request__at_another_host__is_that_of_the_vendors_sdk(played: Played, provider: str, stream: bool) -> None:
    gateway, script, url = played(provider, status(400), status(400))

    with client_of(gateway) as client, pytest.raises(anthropic.BadRequestError):
        client.messages.create(
            model=f"{provider}/{CLAUDE[provider]}", stream=stream, extra_headers={"anthropic-beta": KNOWN}, **CALL
        )
    with sdk_of(provider, url) as sdk, pytest.raises(anthropic.BadRequestError):
        sdk.messages.create(model=CLAUDE[provider], stream=stream, extra_headers={"anthropic-beta": KNOWN}, **CALL)

    ours, theirs = script.received
    assert shape(ours) == shape(theirs)
    assert ours.headers.get("anthropic-beta") == (theirs.headers["anthropic-beta"] if "vertex" in provider else None)


@pytest.mark.parametrize("provider", HOSTS)
def test_beta_feature__that_the_host_does_not_know__is_left_out(played: Played, provider: str) -> None:
    gateway, script, _ = played(provider, raw(200, ANSWER))

    with client_of(gateway) as client:
        client.messages.create(model=f"{provider}/{CLAUDE[provider]}", extra_headers=BETAS, **CALL)

    (sent,) = script.received
    announced = sent.headers.get("anthropic-beta") or ",".join(json.loads(sent.body)["anthropic_beta"])
    assert announced == KNOWN


@pytest.mark.parametrize(
    ("sent", "version"),
    [({}, ""), ({"anthropic-version": "2023-06-01"}, ""), ({"anthropic-version": "2026-10-21"}, "2026-10-21")],
)
@pytest.mark.parametrize(
    ("provider", "first"), [("bedrock", "bedrock-2023-05-31"), ("google_vertex", "vertex-2023-10-16")]
)
def test_version__of_the_client__is_the_hosts_name_of_it(
    played: Played, provider: str, first: str, sent: dict[str, str], version: str
) -> None:
    gateway, script, _ = played(provider, raw(200, ANSWER))
    body = json.dumps({"model": f"{provider}/{CLAUDE[provider]}", **CALL}).encode()

    assert gateway.client.post(PATH, content=body, headers={"x-api-key": gateway.key, **sent}).status_code == 200

    assert json.loads(script.received[0].body)["anthropic_version"] == (version or first)


@pytest.mark.parametrize("provider", HOSTS)
def test_answer__of_another_host__passes_byte_by_byte(played: Played, provider: str) -> None:
    gateway, _, _ = played(provider, raw(200, ANSWER))
    body = json.dumps({"model": f"{provider}/{CLAUDE[provider]}", **CALL}).encode()

    answer = gateway.client.post(PATH, content=body, headers={"x-api-key": gateway.key})

    assert answer.content == ANSWER
    record = gateway.record(answer)
    assert (record.operation, record.is_native, record.provider) == ("messages", True, provider)
    assert (record.prompt_tokens, record.cache_read_tokens, record.cache_write_tokens) == (130, 100, 20)


def test_stream__of_vertex__passes_byte_by_byte(played: Played) -> None:
    gateway, _, _ = played("google_vertex", raw(200, STREAM, {"content-type": "text/event-stream"}))
    model = f"google_vertex/{CLAUDE['google_vertex']}"

    answer = gateway.client.post(
        PATH, content=json.dumps({"model": model, "stream": True, **CALL}).encode(), headers={"x-api-key": gateway.key}
    )

    assert answer.content == STREAM


@pytest.mark.recordings
def test_stream__of_bedrocks_frames__is_the_events_in_them(played: Played) -> None:
    (recording,) = exchanges("bedrock.invoke_stream")
    frames = body_of(recording["response"])
    gateway, _, _ = played("bedrock", raw(200, frames, {"content-type": "application/vnd.amazon.eventstream"}))

    with (
        client_of(gateway) as client,
        client.messages.stream(model=f"bedrock/{CLAUDE['bedrock']}", **CALL) as stream,
    ):
        message = stream.get_final_message()
        request_id = stream.response.headers["x-request-id"]

    assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]
    assert (message.usage.input_tokens, message.usage.output_tokens) == (702, 130)
    record = gateway.record(request_id)
    assert (record.is_native, record.finish_reason, record.prompt_tokens) == (True, "tool_calls", 702)


@pytest.mark.recordings
def test_stream__of_bedrocks_frames_cut_off__ends_with_an_error(played: Played) -> None:
    (recording,) = exchanges("bedrock.invoke_stream")
    frames = body_of(recording["response"])
    gateway, _, _ = played("bedrock", raw(200, frames[: len(frames) // 2]))

    with client_of(gateway) as client, pytest.raises(anthropic.APIError):
        list(client.messages.create(model=f"bedrock/{CLAUDE['bedrock']}", stream=True, **CALL))


def framed(event: dict[str, Any]) -> bytes:
    """Returns the frame of Bedrock that holds an event of the Messages API."""
    headers = {":message-type": "event", ":event-type": "chunk", ":content-type": "application/json"}
    return frame(headers, {"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abcd"})


@pytest.mark.parametrize("begun", [False, True])
def test_exception_in_bedrocks_stream__is_its_error_to_the_client(played: Played, begun: bool) -> None:
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "usage": {}}
    block = {"type": "text", "text": ""}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
    ]
    head = {":message-type": "exception", ":exception-type": "throttlingException", ":content-type": "application/json"}
    frames = b"".join(map(framed, events if begun else events[:1])) + frame(head, {"message": "Too many tokens"})
    gateway, _, _ = played("bedrock", raw(200, frames))
    gateway.service.set_routing(gateway.project_id, retry_enabled=False)

    with client_of(gateway) as client, pytest.raises(anthropic.APIStatusError, match="Too many tokens") as caught:
        list(client.messages.create(model=f"bedrock/{CLAUDE['bedrock']}", stream=True, **CALL))

    assert caught.value.status_code == (200 if begun else 503)


@pytest.mark.parametrize("provider", HOSTS)
def test_image_by_address__which_the_host_does_not_fetch__is_translated(played: Played, provider: str) -> None:
    gateway, script, _ = played(provider, status(400))
    image: Any = {"type": "image", "source": {"type": "url", "url": "data:image/png;base64,aGk="}}
    call = {**CALL, "messages": [{"role": "user", "content": [image]}]}

    with client_of(gateway) as client, pytest.raises(anthropic.BadRequestError):
        client.messages.create(model=f"{provider}/{CLAUDE[provider]}", **call)

    assert all(b'"url"' not in sent.body for sent in script.received)


def test_model_of_another_vendor__at_bedrock__is_translated(played: Played) -> None:
    gateway, script, _ = played("bedrock", status(400))

    with client_of(gateway) as client, pytest.raises(anthropic.BadRequestError):
        client.messages.create(model="bedrock/amazon.nova-lite-v1:0", **CALL)

    assert script.received[0].path.endswith("/converse")


def test_count__at_vertex__is_that_of_the_vendors_sdk(played: Played) -> None:
    gateway, script, url = played("google_vertex", raw(200, b'{"input_tokens": 9}'))

    with client_of(gateway) as client:
        counted = client.messages.count_tokens(model="google_vertex/claude-sonnet-4-5@20250929", messages=ASK)
    with sdk_of("google_vertex", url) as sdk:
        sdk.messages.count_tokens(model="claude-sonnet-4-5@20250929", messages=ASK)

    assert counted.input_tokens == 9
    ours, theirs = script.received
    assert shape(ours) == shape(theirs)


def test_count__at_bedrock__is_an_estimate(played: Played) -> None:
    gateway, script, _ = played("bedrock", status(400))

    with client_of(gateway) as client:
        counted = client.messages.count_tokens(model=f"bedrock/{CLAUDE['bedrock']}", messages=ASK)

    assert counted.input_tokens > 0
    assert not script.received
