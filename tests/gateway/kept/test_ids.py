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
from tests.tables.cases import stored, tabled

_PROVIDERS = ("openai", "anthropic", "google")
_CHAT, _RESPONSES, _MESSAGES = "v1/chat/completions", "v1/responses", "v1/messages"
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


_SOURCE = {"type": "document", "source": {"type": "file", "file_id": "file-1"}}

NAMED: list[tuple[str, Body, str]] = stored(__file__, "NAMED")


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


@tabled
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


@tabled
def test_name__in_what_is_the_clients_own__is_no_id(account: Account, path: str, body: Body) -> None:
    gateway, _ = account()

    assert ask(gateway, path, body).status_code != 404


@tabled
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
