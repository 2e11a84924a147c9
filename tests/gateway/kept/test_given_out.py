"""What an answer has given out is named by the project that got it, and by no other that shares the account."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import httpx2
import openai
import pytest
import redis

from tests.fakes.batches.openai import KEY, OpenAIBatches
from tests.fakes.scripted import Script, ScriptedServer, Step, completion, raw, stream
from tests.gateway.batches.conftest import openai_client
from tests.gateway.batches.lines import jsonl, line
from tests.gateway.conftest import Routed
from tests.gateway.kept.test_ids import Body, ask, messages, responses
from tests.gateway.service import Gateway, GatewayService
from tests.tables.cases import tabled
from tests.waiting import wait_until

_CHAT, _RESPONSES, _MESSAGES = "v1/chat/completions", "v1/responses", "v1/messages"
_TEXT = {"type": "output_text", "text": "Hello", "annotations": []}
_ITEMS = [
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBO"},
    {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "container_id": "cntr_1", "code": "1"},
    {"type": "shell_call", "id": "sh_1", "environment": {"type": "container_reference", "container_id": "cntr_2"}},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [_TEXT]},
]
_RESPONSE: Body = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_760_000_000,
    "status": "completed",
    "model": "gpt-5",
    "store": True,
    "output": _ITEMS,
    "usage": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18},
}
_TEXT_ALONE = {**_RESPONSE, "output": _ITEMS[-1:]}
_MESSAGE: Body = {
    "id": "msg_2",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "container": {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"},
    "usage": {"input_tokens": 11, "output_tokens": 7},
}
_SOUND = {"id": "audio_1", "data": "UklGRg==", "transcript": "Hello", "expires_at": 1_760_000_000}
_SPOKEN = completion("")
_SPOKEN["choices"][0]["message"] |= {"content": None, "audio": _SOUND}


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _streamed(path: str, answer: Body) -> Step:
    if path == _RESPONSES:
        begun = {**answer, "status": "in_progress", "output": [], "usage": None}
        done = [_event("response.output_item.done", item=item) for item in answer["output"]]
        return stream(_event("response.created", response=begun), *done, _event("response.completed", response=answer))
    if path == _MESSAGES:
        begun = {**answer, "content": [], "stop_reason": None, "container": None}
        return stream(
            _event("message_start", message=begun),
            _event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            _event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hello"}),
            _event("content_block_stop", index=0),
            _event(
                "message_delta",
                delta={"stop_reason": "end_turn", "container": answer["container"]},
                usage={"output_tokens": 7},
            ),
            _event("message_stop"),
        )
    chunks = [_chunk({"role": "assistant", "audio": _SOUND}, None), _chunk({}, "stop"), b"data: [DONE]\n\n"]
    return stream(*chunks)


def _chunk(delta: Body, reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    fields = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
    return f"data: {json.dumps({**fields, 'choices': [choice]})}\n\n".encode()


def _whole(answer: Body) -> Step:
    return raw(200, json.dumps(answer).encode())


class Account:
    """A provider's account that several projects share."""

    def __init__(self, service: GatewayService, upstream: ScriptedServer, *steps: Step) -> None:
        name = f"given-{len(upstream.scripts)}"
        self.script: Script = upstream.play(name, *steps)
        self._service, self._url = service, upstream.base_url(name)

    def project(self, *, own: bool = False) -> Gateway:
        rows = [
            {"provider": one, "base_url": self._url, "api_key": "sk-shared", "own_account": own}
            for one in ("openai", "anthropic")
        ]
        return self._service.new_project(integrations=rows)


Accounts = Callable[..., Account]


@pytest.fixture
def accounts(service: GatewayService, upstream: ScriptedServer) -> Accounts:
    return partial(Account, service, upstream)


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
@tabled
def test_id__that_an_answer_has_given_out__is_named_by_its_project_and_by_nobody_else(
    accounts: Accounts, *, path: str, first: Body, given: Body, then: Body, is_stream: bool
) -> None:
    account = accounts(_streamed(path, given) if is_stream else _whole(given), _whole(given))
    owner, stranger = account.project(), account.project()

    assert ask(owner, path, {**first, "stream": is_stream}).status_code == 200
    named = ask(owner, path, then)
    foreign = ask(stranger, path, then)

    assert named.status_code == 200, named.content
    assert foreign.status_code == 404
    assert foreign.json()["error"]["type"] in ("not_found", "not_found_error")
    assert len(account.script.received) == 2


@pytest.mark.parametrize(
    "then", [responses(previous_response_id="resp_1"), responses({"type": "item_reference", "id": "msg_1"})]
)
def test_id__of_a_response_that_is_not_stored__is_not_found(accounts: Accounts, then: Body) -> None:
    owner = accounts(_whole({**_TEXT_ALONE, "store": False})).project()

    assert ask(owner, _RESPONSES, responses(store=False)).status_code == 200

    assert ask(owner, _RESPONSES, then).status_code == 404


def test_id__that_stands_in_the_answer_as_a_text_or_an_argument__is_not_given_out(accounts: Accounts) -> None:
    told: Body = {"type": "tool_use", "id": "t", "name": "f", "input": {"container": {"id": "container_9"}}}
    echoed = {**_TEXT_ALONE, "metadata": {"id": "resp_9"}, "previous_response_id": "resp_9"}
    owner = accounts(_whole({**_MESSAGE, "content": [told]}), _whole(echoed)).project()

    assert ask(owner, _MESSAGES, messages()).status_code == 200
    assert ask(owner, _RESPONSES, responses()).status_code == 200

    assert ask(owner, _MESSAGES, messages(container="container_9")).status_code == 404
    assert ask(owner, _RESPONSES, responses(previous_response_id="resp_9")).status_code == 404


@pytest.fixture
def store(service: GatewayService) -> Iterator[redis.Redis]:
    with closing(redis.Redis.from_url(service.environment["REDIS_URL"])) as connected:
        yield connected


def test_id__whose_note_redis_has_lost__is_not_found_with_the_cure(accounts: Accounts, store: redis.Redis) -> None:
    owner = accounts(_whole(_TEXT_ALONE), _whole({**_TEXT_ALONE, "id": "resp_2"})).project()
    named = responses(previous_response_id="resp_1")
    assert ask(owner, _RESPONSES, responses()).status_code == 200
    assert ask(owner, _RESPONSES, named).status_code == 200
    noted = wait_until(lambda: list(store.scan_iter(f"svc:kept:{{{owner.project_id}}}:*")) or None)

    store.delete(*noted)

    error = ask(owner, _RESPONSES, named).json()["error"]
    assert error["message"].startswith("previous_response_id: this project has no response 'resp_1'")
    assert "own_account" in error["message"]


def test_answer__of_an_account_of_the_projects_own__is_not_noted(accounts: Accounts, store: redis.Redis) -> None:
    owner = accounts(_whole(_TEXT_ALONE)).project(own=True)

    assert ask(owner, _RESPONSES, responses()).status_code == 200
    assert ask(owner, _RESPONSES, responses(previous_response_id="resp_1")).status_code == 200

    assert not list(store.scan_iter(f"svc:kept:{{{owner.project_id}}}:*"))


def test_id__that_one_of_two_accounts_keeps__goes_there(routed: Routed) -> None:
    steps = [_whole(_TEXT_ALONE)]
    gateway, scripts = routed(openai=steps, azure_openai=steps)
    first = {**responses(), "model": "azure_openai/gpt-5"}

    assert ask(gateway, _RESPONSES, first).status_code == 200
    named = {**responses({"type": "item_reference", "id": "msg_1"}), "model": "gpt-5"}
    answer = ask(gateway, _RESPONSES, named)

    assert answer.status_code == 200, answer.content
    assert [len(scripts[name].received) for name in ("openai", "azure_openai")] == [0, 2]


def test_item__that_openai_keeps__does_not_hinder_a_provider_that_does_not_read_it(routed: Routed) -> None:
    gateway, scripts = routed(openai=[_whole(_RESPONSE)], groq=[_whole(completion("Hello"))])
    said = {"type": "reasoning", "id": "rs_1", "summary": []}

    answer = ask(gateway, _RESPONSES, {**responses(said, {"role": "user", "content": "Hi"}), "model": "groq/llama"})

    assert answer.status_code == 200, answer.content
    assert b"rs_1" not in scripts["groq"].received[0].body


def test_items__that_an_agent_sends_back_whole__pass(accounts: Accounts) -> None:
    owner = accounts(_whole(_TEXT_ALONE)).project()
    thought = {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "gAAAA"}
    call = {"type": "function_call", "id": "fc_9", "call_id": "c", "name": "f", "arguments": "{}"}
    done = {"type": "function_call_output", "call_id": "c", "output": "1"}
    said = {"type": "message", "id": "msg_9", "role": "assistant", "content": [_TEXT]}

    assert ask(owner, _RESPONSES, responses(thought, call, done, said, store=False)).status_code == 200


def test_id__while_redis_is_away__is_a_503_with_retry_after(upstream: ScriptedServer) -> None:
    with GatewayService(workers=1) as service:
        owner = Account(service, upstream, _whole(_TEXT_ALONE)).project()
        service.redis.send(signal.SIGSTOP)
        try:
            answer: httpx2.Response = ask(owner, _RESPONSES, responses(previous_response_id="resp_1"))
        finally:
            service.redis.send(signal.SIGCONT)

    assert answer.status_code == 503, answer.content
    assert int(answer.headers["retry-after"]) > 0


def test_response__that_a_batch_has_given_out__is_named_by_the_next_batch_of_its_project_alone(
    service: GatewayService,
) -> None:
    def lines(**fields: Any) -> bytes:
        return jsonl(line("a", url="/v1/responses", body={**responses(), "model": "gpt-5", **fields}))

    with OpenAIBatches() as vendor:
        owner, stranger = (service.new_project(base_urls={"openai": vendor.base_url}, secret=KEY) for _ in range(2))
        batches = openai_client(owner)
        file = batches.files.create(file=("in.jsonl", lines()), purpose="batch")
        made = batches.batches.create(input_file_id=file.id, endpoint="/v1/responses", completion_window="24h")
        vendor.finish(made.id)
        output = batches.batches.retrieve(made.id).output_file_id
        assert output
        result = {"custom_id": "a", "response": {"status_code": 200, "body": _TEXT_ALONE}, "error": None}
        vendor.contents[output] = jsonl(result)
        batches.files.content(output)
        named = lines(previous_response_id="resp_1")

        assert batches.files.create(file=("in.jsonl", named), purpose="batch").id
        with pytest.raises(openai.NotFoundError, match=r"line 1: body\.previous_response_id"):
            openai_client(stranger).files.create(file=("in.jsonl", named), purpose="batch")
