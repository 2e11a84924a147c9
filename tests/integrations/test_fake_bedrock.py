"""Tests the fake of Converse against boto3: its answers and its reading of requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError

from integrations.providers.usage import Usage
from tests.fakes.dialects.bedrock import FAKE, KEY_ID, REGION, SECRET_KEY
from tests.fakes.dialects.server import DialectServer, answer_with, breaks, fails
from tests.fakes.dialects.story import Call, Finish, ReadRequest, Story

MODEL = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
STORY = Story(
    text="Grüße 👋, it is 18 degrees.",
    reasoning="The user greets me.",
    signature="c2lnbmVk",
    calls=(Call("tooluse_1", "get_weather", {"city": "Zürich"}), Call("tooluse_2", "ping", {})),
    finish="tool_calls",
    usage=Usage(100, 20, cache_read_tokens=60, cache_write_tokens=10),
)
ASK: dict[str, Any] = {"modelId": MODEL, "messages": [{"role": "user", "content": [{"text": "Hello"}]}]}
STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "guardrail_intervened",
}


@pytest.fixture
def client(server: DialectServer) -> Iterator[Any]:
    session = boto3.Session(KEY_ID, SECRET_KEY, region_name=REGION)
    config = Config(retries={"total_max_attempts": 1})
    boto3_client = session.client("bedrock-runtime", endpoint_url=server.base_url("s"), config=config)
    yield boto3_client
    boto3_client.close()


def read_by_sdk(client: Any, *, stream: bool, **more: Any) -> dict[str, Any]:
    """Returns the answer in the form of Converse; a stream is joined block by block."""
    if not stream:
        answer: dict[str, Any] = client.converse(**{**ASK, **more})
        return answer
    blocks: dict[int, dict[str, Any]] = {}
    found: dict[str, Any] = {}
    with closing(client.converse_stream(**{**ASK, **more})["stream"]) as events:
        for event in events:
            ((kind, fields),) = event.items()
            if kind == "contentBlockStart":
                blocks[fields["contentBlockIndex"]] = {"toolUse": {**fields["start"]["toolUse"], "input": ""}}
            elif kind == "contentBlockDelta":
                _add(blocks, fields["contentBlockIndex"], fields["delta"])
            elif kind in ("messageStop", "metadata"):
                found |= fields
    return {**found, "output": {"message": {"content": [blocks[index] for index in sorted(blocks)]}}}


def _add(blocks: dict[int, dict[str, Any]], index: int, delta: dict[str, Any]) -> None:
    if "toolUse" in delta:
        blocks[index]["toolUse"]["input"] += delta["toolUse"]["input"]
    elif "text" in delta:
        known = blocks.setdefault(index, {"text": ""})
        known["text"] += delta["text"]
    else:
        thought = blocks.setdefault(index, {"reasoningContent": {"reasoningText": {"text": "", "signature": ""}}})
        for name, value in delta["reasoningContent"].items():
            thought["reasoningContent"]["reasoningText"][name] += value


@pytest.mark.parametrize("stream", [False, True])
def test_fake__story__read_by_boto3(server: DialectServer, client: Any, stream: bool) -> None:
    server.play("s", answer_with(FAKE, STORY))
    answer = read_by_sdk(client, stream=stream)
    thought, text, weather, ping = answer["output"]["message"]["content"]
    assert thought["reasoningContent"]["reasoningText"] == {"text": STORY.reasoning, "signature": STORY.signature}
    assert text == {"text": STORY.text}
    assert weather["toolUse"]["toolUseId"] == "tooluse_1"
    assert weather["toolUse"]["input"] == ('{"city": "Zürich"}' if stream else {"city": "Zürich"})
    assert (ping["toolUse"]["name"], ping["toolUse"]["input"]) == ("ping", "" if stream else {})
    assert answer["stopReason"] == "tool_use"
    assert answer["usage"] == {
        "inputTokens": 30,
        "outputTokens": 20,
        "totalTokens": 120,
        "cacheReadInputTokens": 60,
        "cacheWriteInputTokens": 10,
    }


@pytest.mark.parametrize("finish", STOP_REASONS)
@pytest.mark.parametrize("stream", [False, True])
def test_fake__finish__in_the_vendors_words(server: DialectServer, client: Any, finish: Finish, stream: bool) -> None:
    server.play("s", answer_with(FAKE, Story(text="x", finish=finish)))
    assert read_by_sdk(client, stream=stream)["stopReason"] == STOP_REASONS[finish]


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "ValidationException"),
        (403, "AccessDeniedException"),
        (404, "ResourceNotFoundException"),
        (429, "ThrottlingException"),
        (500, "InternalServerException"),
        (503, "ServiceUnavailableException"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_fake__failure__raised_by_boto3(
    server: DialectServer, client: Any, status: int, name: str, stream: bool
) -> None:
    server.play("s", fails(FAKE, status, "It is «broken»", retry_after=7))
    with pytest.raises(ClientError) as caught:
        read_by_sdk(client, stream=stream)
    assert isinstance(caught.value, getattr(client.exceptions, name))
    assert caught.value.response["Error"]["Message"] == "It is «broken»"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert caught.value.response["ResponseMetadata"]["HTTPHeaders"]["retry-after"] == "7"


@pytest.mark.parametrize("story", [Story(), Story(text="Hello")])
def test_fake__error_in_the_stream__raised_by_boto3(server: DialectServer, client: Any, story: Story) -> None:
    server.play("s", breaks(FAKE, story, "Too many requests"))
    with pytest.raises(EventStreamError) as caught:
        read_by_sdk(client, stream=True)
    assert caught.value.response["Error"] == {"Code": "throttlingException", "Message": "Too many requests"}


@pytest.mark.parametrize("stream", [False, True])
def test_fake__what_boto3_sends__understood(server: DialectServer, client: Any, stream: bool) -> None:
    server.play("s", answer_with(FAKE, Story(text="x")))
    png, pdf = b"\x89PNG\xff", b"%PDF-1.4\xff"
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    use = {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Oslo"}}
    result = {"toolUseId": "tooluse_1", "content": [{"text": "18 degrees"}, {"json": {"a": 1}}], "status": "success"}
    thought = {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}
    read_by_sdk(
        client,
        stream=stream,
        system=[{"text": "Be brief."}],
        messages=[
            {
                "role": "user",
                "content": [
                    {"text": "What is this?"},
                    {"image": {"format": "png", "source": {"bytes": png}}},
                    {"document": {"format": "pdf", "name": "Report 1", "source": {"bytes": pdf}}},
                    {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a.png"}}}},
                ],
            },
            {"role": "assistant", "content": [{"reasoningContent": thought}, {"text": "Wait."}, {"toolUse": use}]},
            {"role": "user", "content": [{"toolResult": result}]},
        ],
        inferenceConfig={"maxTokens": 77, "temperature": 0.25, "topP": 0.5, "stopSequences": ["END"]},
        toolConfig={
            "tools": [{"toolSpec": {"name": "get_weather", "inputSchema": {"json": schema}}}],
            "toolChoice": {"tool": {"name": "get_weather"}},
        },
        outputConfig={
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"schema": '{"type": "object"}', "name": "reply"}},
            }
        },
    )
    assert server.requests_of("s", FAKE) == [
        ReadRequest(
            model=MODEL,
            stream=stream,
            system="Be brief.",
            turns=(("user", "What is this?"), ("assistant", "Wait.")),
            images=(("image/png", png), ("url", "s3://bucket/a.png")),
            documents=(("application/pdf", pdf),),
            tools=("get_weather",),
            calls=(Call("tooluse_1", "get_weather", {"city": "Oslo"}),),
            results=(("tooluse_1", '18 degrees{"a": 1}'),),
            tool_choice="function:get_weather",
            schema={"type": "object"},
            stop=("END",),
            max_tokens=77,
            temperature=0.25,
            top_p=0.5,
            signatures=("c2ln",),
            secret=KEY_ID,
        )
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"messages": [{"role": "assistant", "content": [{"text": "x"}]}]}, "start with a user"),
        ({"messages": [{"role": "user", "content": [{"text": " "}]}]}, "blank"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}] * 2}, "alternate"),
    ],
)
def test_fake__what_the_vendor_refuses__a_400(
    server: DialectServer, client: Any, change: dict[str, Any], problem: str
) -> None:
    server.play("s", answer_with(FAKE, Story(text="x")))
    with pytest.raises(ClientError, match=problem):
        read_by_sdk(client, stream=False, **change)
