"""Every operation that Channels serves answers as the document says: a request of each that succeeds, and those that
schemathesis makes of the document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from core.openapi.views import document
from tests.described import check
from tests.fakes.scripted import ScriptedServer
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.managed import make_prompt
from tests.gateway.service import Gateway, GatewayService
from tests.night import examples
from tests.openapi.checks import CHECKS, EXAMPLES
from tests.openapi.routes import Operation, channels_paths, operations
from tests.openapi.vendor import everything
from tests.waiting import TIMEOUT_SECONDS

schema = schemathesis.openapi.from_dict(document()).include(path=sorted(channels_paths()))
schema.config.phases.update(phases=["examples", "fuzzing"])

OF_CHANNELS = [operation for operation in operations() if operation.path in channels_paths()]
# These calls need the answers of earlier ones: tests/gateway/batches/test_documented.py makes them in order.
OF_STORED_OBJECTS = [one for one in OF_CHANNELS if re.match(r"/api/gateway/v1/(files|(messages/)?batches)", one.path)]
SUCCEEDING = [
    operation
    for operation in OF_CHANNELS
    if "200" in operation.described["responses"] and operation not in OF_STORED_OBJECTS
]
MODEL = "openai_compatible/scripted-1"
MESSAGES = [{"role": "user", "content": "Hello"}]
CONTENT = {"contents": [{"parts": [{"text": "Hello"}]}]}
PROMPT = "support"
# A body of each operation that succeeds.
BODIES: dict[str, dict[str, Any]] = {
    "createChatCompletion": {"model": MODEL, "messages": MESSAGES},
    "createResponse": {"model": MODEL, "input": "Hello"},
    "createMessage": {"model": MODEL, "messages": MESSAGES, "max_tokens": 5},
    "countMessageTokens": {"model": MODEL, "messages": MESSAGES},
    "generateContent": CONTENT,
    "streamGenerateContent": CONTENT,
    "countContentTokens": CONTENT,
    "embedContent": {"content": CONTENT["contents"][0]},
    "batchEmbedContents": {"requests": [{"content": CONTENT["contents"][0]}]},
    "createCompletion": {"model": MODEL, "prompt": "Hello"},
    "createEmbeddings": {"model": MODEL, "input": ["a", "b"]},
    "createRanking": {"model": MODEL, "query": "a", "documents": ["a"]},
    "createModeration": {"model": MODEL, "input": "a"},
    "createImage": {"model": MODEL, "prompt": "a"},
    "createSpeech": {"model": MODEL, "input": "a", "voice": "alloy"},
    "chatWithAgent": {"message": "Hello"},
    "callAgentTools": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    "renderPrompt": {},
}
FORMS: dict[str, dict[str, Any]] = {"createTranscription": {"model": MODEL}}
STREAMED = [
    operation
    for operation in SUCCEEDING
    if "text/event-stream" in operation.described["responses"]["200"]["content"] and operation.id != "chatWithAgent"
]


@pytest.fixture(scope="module")
def served() -> Iterator[Gateway]:
    with ScriptedServer() as upstream, GatewayService(workers=1, settings=LONG_TIMEOUTS) as service:
        upstream.play("plain", everything)
        gateway = service.new_project(
            base_urls={name: upstream.base_url("plain") for name in ("openai", "openai_compatible")},
            routing={"agent_model": MODEL},
        )
        make_prompt(gateway, "Be brief.", name=PROMPT)
        yield gateway
        assert "Traceback" not in service.log.read_text(errors="replace")


def filled(path: str) -> str:
    return path.format(model="openai/gpt-4o-mini", name=PROMPT, response_id="resp_1", id="file-1")


def ask(served: Gateway, operation: Operation, query: dict[str, Any] | None = None, /, **more: Any) -> Any:
    path = filled(operation.path)
    sent: dict[str, Any] = {"params": {"name": PROMPT}} if operation.id == "getPromptByName" else dict(query or {})
    if operation.id in FORMS:
        sent |= {"data": {**FORMS[operation.id], **more}, "files": {"file": ("a.wav", b"RIFF")}}
    elif operation.method == "post":
        sent["json"] = {**BODIES[operation.id], **more}
    return served.client.request(operation.method.upper(), path, headers=headers_of(served), **sent)


def headers_of(served: Gateway) -> dict[str, str]:
    return {"Authorization": f"Bearer {served.key}", "X-Project-Id": served.project_id}


@pytest.mark.parametrize("operation", SUCCEEDING, ids=lambda operation: operation.id)
def test_operation__that_succeeds__answers_as_described(served: Gateway, operation: Operation) -> None:
    answer = ask(served, operation)

    assert answer.status_code == 200, answer.text
    assert answer.headers["x-request-id"]
    described = operation.described["responses"]["200"].get("headers", {})
    own = {name for name in answer.headers if name.startswith("x-") and name != "x-accel-buffering"}
    assert own <= {name.lower() for name in described}


@pytest.mark.parametrize(
    "operation",
    [operation for operation in OF_CHANNELS if operation.method == "get"],
    ids=lambda operation: operation.id,
)
def test_operation__that_is_read__answers_head_as_get_without_a_body(served: Gateway, operation: Operation) -> None:
    answer, head = ask(served, operation), ask(served, operation._replace(method="head"))

    assert (head.status_code, head.content) == (answer.status_code, b"")
    assert set(head.headers) == set(answer.headers)
    assert head.headers["content-type"] == answer.headers["content-type"]


@pytest.mark.parametrize("operation", STREAMED, ids=lambda operation: operation.id)
def test_operation__streamed__every_event_is_as_described(served: Gateway, operation: Operation) -> None:
    alt = {"params": {"alt": "sse"}} if operation.id == "streamGenerateContent" else {}
    answer = ask(served, operation, alt, **({} if alt else {"stream": True}))

    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.count("data: {")


@pytest.mark.parametrize(("operation_id", "response_format"), [("createTranscription", "text")])
def test_transcription__as_text__answers_as_described(served: Gateway, operation_id: str, response_format: str) -> None:
    (operation,) = [one for one in SUCCEEDING if one.id == operation_id]

    answer = ask(served, operation, response_format=response_format)

    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "text/plain")


@pytest.mark.parametrize("operation", ["listModels", "getModel"])
def test_models__for_anthropics_clients__answer_as_described(served: Gateway, operation: str) -> None:
    (described,) = [one for one in SUCCEEDING if one.id == operation]

    headers = {**headers_of(served), "anthropic-version": "2023-06-01"}
    answer = served.client.get(filled(described.path), headers=headers)

    assert answer.status_code == 200
    assert "object" not in answer.json()


@pytest.mark.parametrize("path", sorted(channels_paths()))
def test_path__another_method__is_refused_by_those_that_the_document_names(served: Gateway, path: str) -> None:
    """Paths that answer every method alike do so as the document says. HEAD goes with GET, unsaid."""
    named = {operation.method.upper() for operation in OF_CHANNELS if operation.path == path}
    answer = served.client.request("PROPFIND", filled(path), headers=headers_of(served))

    if answer.status_code == 405:
        # A name of a prompt may end like the path that renders one.
        named |= {"GET"} if path.endswith("/render") else set()
        assert set(answer.headers["allow"].split(", ")) == named | ({"HEAD"} if "GET" in named else set())
    else:
        for method in named:
            check(path, method, answer.status_code, answer.headers["content-type"], answer.content)


@schema.parametrize()
@settings(
    max_examples=examples(4, 10) * EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_gateway__any_documented_request__answers_as_described(case: schemathesis.Case[Any], served: Gateway) -> None:
    if isinstance(case.body, dict) and "model" in case.body and len(repr(case.body)) % 2:
        # Half of the requests name a model that exists.
        case.body["model"] = MODEL
    headers = headers_of(served)
    answer = case.call(base_url=served.service.base_url(), headers=headers, timeout=TIMEOUT_SECONDS)
    case.validate_response(answer, checks=CHECKS, headers=headers)
