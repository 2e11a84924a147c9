"""A request names only what its own project has had the provider keep, even where two projects share an account."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.fakes.batches.openai import KEY, OpenAIBatches
from tests.fakes.scripted import Script, ScriptedServer, completion, raw
from tests.gateway.batches.lines import jsonl, line
from tests.gateway.service import Gateway, GatewayService

_PROVIDERS = ("openai", "anthropic", "google")
_CHAT, _RESPONSES, _MESSAGES = "v1/chat/completions", "v1/responses", "v1/messages"
_GEMINI = "v1beta/models/gemini-2.5-flash:generateContent"
_FILE = json.dumps({"id": "file-1", "object": "file", "purpose": "user_data", "filename": "a.txt"}).encode()
_ANSWER = json.dumps(completion("Hello")).encode()

Body = dict[str, Any]
Account = Callable[..., tuple[Gateway, Script]]


def chat(*parts: Body, **fields: Any) -> Body:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": [*parts]}], **fields}


def responses(*items: Body, **fields: Any) -> Body:
    return {"model": "openai/gpt-5", "input": [*items] or "Hi", **fields}


def messages(*blocks: Body, **fields: Any) -> Body:
    said = [{"role": "user", "content": [{"type": "text", "text": "Hi"}, *blocks]}]
    return {"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": said, **fields}


def gemini(*parts: Body, **fields: Any) -> Body:
    return {"contents": [{"role": "user", "parts": [{"text": "Hi"}, *parts]}], **fields}


def shell(environment: Body) -> Body:
    return responses(tools=[{"type": "shell", "environment": environment}])


def says(*parts: Body) -> Body:
    return {"role": "user", "content": [*parts]}


_SOURCE = {"type": "document", "source": {"type": "file", "file_id": "file-1"}}
_GOOGLES = "https://generativelanguage.googleapis.com/v1beta/files/abc"
_SPOKEN = {"role": "assistant", "audio": {"id": "audio_1"}}
_SKILLS = {"type": "container_auto", "skills": [{"type": "skill_reference", "skill_id": "skill_1"}]}
_SEARCH = {"type": "file_search", "vector_store_ids": ["vs_1"]}

NAMED: list[tuple[str, Body, str]] = [
    (_CHAT, chat({"type": "file", "file": {"file_id": "file-1"}}), "messages[0].content[0].file.file_id"),
    (_CHAT, {"model": "gpt-4o", "messages": [says()], "conversation_id": "c_1"}, "conversation_id"),
    (_CHAT, chat({"type": "text", "text": "Hi"}, container="container_1", model="claude-sonnet-4-5"), "container"),
    (_CHAT, chat({"type": "text", "text": "Hi"}, tools=[_SEARCH]), "tools[0].vector_store_ids"),
    (_RESPONSES, responses(says({"type": "input_file", "file_id": "file-1"})), "input[0].content[0].file_id"),
    (_RESPONSES, responses(says({"type": "input_image", "file_id": "file-1"})), "input[0].content[0].file_id"),
    (_RESPONSES, responses(previous_response_id="resp_1"), "previous_response_id"),
    (_RESPONSES, responses(conversation="conv_1"), "conversation"),
    (_RESPONSES, responses(conversation={"id": "conv_1"}), "conversation.id"),
    (_RESPONSES, responses(prompt={"id": "pmpt_1"}), "prompt.id"),
    (
        _RESPONSES,
        responses(prompt={"id": "", "variables": {"a": {"type": "input_file", "file_id": "file-1"}}}),
        "prompt.variables.a.file_id",
    ),
    (_RESPONSES, responses(tools=[_SEARCH]), "tools[0].vector_store_ids"),
    (_RESPONSES, responses(tools=[{"type": "code_interpreter", "container": "cntr_1"}]), "tools[0].container"),
    (
        _RESPONSES,
        responses(tools=[{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file-1"]}}]),
        "tools[0].container.file_ids",
    ),
    (_RESPONSES, responses({"type": "item_reference", "id": "msg_1"}), "input[0].id"),
    (_RESPONSES, responses({"type": None, "id": "msg_1"}), "input[0].id"),
    (_RESPONSES, responses({"type": "reasoning", "id": "rs_1", "summary": []}), "input[0].id"),
    (_RESPONSES, responses({"type": "image_generation_call", "id": "ig_1"}), "input[0].id"),
    (_MESSAGES, messages(_SOURCE), "messages[0].content[1].source.file_id"),
    (_MESSAGES, messages({"type": "container_upload", "file_id": "file-1"}), "messages[0].content[1].file_id"),
    (_MESSAGES, messages(container="container_1"), "container"),
    (_MESSAGES, messages(container={"id": "container_1"}), "container.id"),
    (
        _MESSAGES,
        messages(container={"skills": [{"type": "custom", "skill_id": "skill_1"}]}),
        "container.skills[0].skill_id",
    ),
    (f"{_MESSAGES}/count_tokens", messages(_SOURCE), "messages[0].content[1].source.file_id"),
    (_GEMINI, gemini(cachedContent="cachedContents/1"), "cachedContent"),
    (_GEMINI, gemini({"fileData": {"fileUri": _GOOGLES}}), "contents[0].parts[1].fileData.fileUri"),
    (_GEMINI, gemini({"file_data": {"file_uri": _GOOGLES}}), "contents[0].parts[1].file_data.file_uri"),
    (_GEMINI, gemini(tools=[{"fileSearch": {"fileSearchStoreNames": ["s"]}}]), "tools[0].fileSearch."),
    (
        _CHAT,
        {"model": "gpt-4o", "messages": [says(), _SPOKEN]},
        "messages[1].audio.id",
    ),
    (_CHAT, chat(audio={"voice": {"id": "voice_1"}, "format": "wav"}), "audio.voice.id"),
    (_RESPONSES, responses(comparison_response_id="resp_1"), "comparison_response_id"),
    (_RESPONSES, shell({"type": "container_reference", "container_id": "cntr_1"}), "tools[0].environment.container_id"),
    (_RESPONSES, shell(_SKILLS), "tools[0].environment.skills[0].skill_id"),
]


@pytest.fixture
def account(service: GatewayService, upstream: ScriptedServer) -> Account:
    """Makes a project whose providers all have one account."""
    name = f"kept-{len(upstream.scripts)}"
    script = upstream.play(name, raw(200, _ANSWER))

    def make(*, own_account: bool = False) -> tuple[Gateway, Script]:
        rows = [
            {"provider": one, "base_url": upstream.base_url(name), "api_key": "sk-shared", "own_account": own_account}
            for one in _PROVIDERS
        ]
        return service.new_project(integrations=rows), script

    return make


def ask(gateway: Gateway, path: str, body: Body | bytes) -> httpx2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {**gateway.headers, "content-type": "application/json"}
    return gateway.client.post(f"/api/gateway/{path}", content=content, headers=headers)


@pytest.mark.parametrize(("path", "body", "field"), NAMED)
def test_id__that_the_project_has_not_got__is_not_found_and_not_sent(
    account: Account, path: str, body: Body, field: str
) -> None:
    gateway, script = account()

    answer = ask(gateway, path, body)

    assert answer.status_code == 404, answer.content
    assert answer.json()["error"]["message"].startswith(f"{field}")
    assert "own_account" in answer.json()["error"]["message"]
    assert not script.received


@pytest.mark.parametrize(("path", "body", "field"), NAMED)
def test_id__at_an_account_of_the_projects_own__is_passed_on(
    account: Account, path: str, body: Body, field: str
) -> None:
    gateway, _ = account(own_account=True)

    assert ask(gateway, path, body).status_code != 404


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(chat({"type": "file", "file": {"file_id": "file-1"}})).replace("file_id", "f\\u0069le\\u005Fid"),
        '{"model": "gpt-4o", "messages": [{"role": "user", "content": [{"type": "file", "file":'
        ' {"file_id": "file-1", "file_id": null}}]}]}',
        '{"model": "gpt-4o", "messages": [{"role": "user", "content": [{"type": "file", "type": "file_citation",'
        ' "file": {"file_id": "file-1"}}]}]}',
    ],
)
def test_id__in_another_spelling__is_not_found(account: Account, body: str) -> None:
    gateway, script = account()

    assert ask(gateway, _CHAT, body.encode()).status_code == 404
    assert not script.received


def test_file__of_the_project__is_named_by_it_and_by_nobody_else(account: Account, upstream: ScriptedServer) -> None:
    owner, script = account()
    stranger, _ = account()
    script.steps = [raw(200, _FILE), raw(200, _ANSWER)]
    files: Any = {"file": ("a.txt", b"text"), "purpose": (None, "user_data")}
    made = owner.client.post("/api/gateway/v1/files", files=files, headers=owner.headers)
    assert made.json()["id"] == "file-1"
    body = chat({"type": "file", "file": {"file_id": "file-1"}})

    assert ask(owner, _CHAT, body).status_code == 200
    assert ask(owner, _CHAT, body).status_code == 200
    assert ask(stranger, _CHAT, body).status_code == 404
    # Another account of the same project does not have it.
    assert ask(owner, _MESSAGES, messages(_SOURCE)).status_code == 404

    assert [json.loads(one.body)["messages"] for one in script.received[1:]] == [body["messages"]] * 2


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (_CHAT, chat({"type": "text", "text": "Hi"}, metadata={"file_id": "file-1", "container": "c"})),
        (_CHAT, chat({"type": "text", "text": '{"file_id": "file-1", "conversation": "conv_1"}'})),
        (_MESSAGES, messages({"type": "tool_use", "id": "t", "name": "f", "input": {"file_id": "file-1"}})),
        (_MESSAGES, messages(container={"skills": [{"type": "anthropic", "skill_id": "pptx"}]})),
        (_GEMINI, gemini({"fileData": {"fileUri": "https://example.com/files/a.pdf"}})),
        (_GEMINI, gemini({"functionCall": {"name": "f", "args": {"file_id": "file-1"}}})),
        (_RESPONSES, responses({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"})),
        (_RESPONSES, shell({"type": "container_auto", "skills": [{"skill_id": "openai-spreadsheets"}]})),
        (_CHAT, chat(audio={"voice": "alloy", "format": "wav"}, modalities=["text", "audio"])),
        (
            _RESPONSES,
            responses(tools=[{"type": "function", "name": "f", "parameters": {"properties": {"file_id": {}}}}]),
        ),
    ],
)
def test_name__in_what_is_the_clients_own__is_no_id(account: Account, path: str, body: Body) -> None:
    gateway, _ = account()

    assert ask(gateway, path, body).status_code != 404


@pytest.mark.parametrize(
    ("named", "field"),
    [
        (chat({"type": "file", "file": {"file_id": "file-1"}}), "messages[0].content[0].file.file_id"),
        (chat({"type": "text", "text": "Hi"}, tools=[_SEARCH]), "tools[0].vector_store_ids"),
        ({"model": "gpt-4o", "messages": [_SPOKEN]}, "messages[0].audio.id"),
    ],
)
def test_batch__whose_line_names_what_is_another_projects__is_refused(
    service: GatewayService, named: Body, field: str
) -> None:
    named = {**named, "model": "gpt-4o-mini"}
    with OpenAIBatches() as vendor:
        gateway = service.new_project(base_urls={"openai": vendor.base_url}, secret=KEY)
        files: Any = {"file": ("in.jsonl", jsonl(line("a"), line("b", body=named))), "purpose": (None, "batch")}

        refused = gateway.client.post("/api/gateway/v1/files", files=files, headers=gateway.headers)

        assert refused.status_code == 404
        assert refused.json()["error"]["message"].startswith(f"line 2: body.{field}: ")
        assert not vendor.files
