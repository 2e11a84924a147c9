"""Tests that what is wrong with a request is told in the client's own protocol, as its vendor's SDK reads errors, and
that nothing of it reaches a provider or a log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google.genai import errors as google

from tests.fakes.scripted import Script, ScriptedServer, answer
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.surfaces.gemini.clients import client_of as google_client
from tests.gateway.surfaces.messages.clients import client_of as anthropic_client
from tests.tables.cases import tabled

UNKNOWN_MODEL = "xai/of-no-integration"
WRONG_KEY = "svc_" + "W" * 43
# A byte more than the bound of bodies, 32 MiB.
TOO_LARGE = b" " * (32 * 1024 * 1024 + 1)

Json = dict[str, Any]


@dataclass(frozen=True)
class Endpoint:
    """A path below the gateway's address, the protocol of its clients, and a good request to it. Gemini's paths hold
    the model."""

    path: str
    protocol: str
    body: Json

    def send(
        self,
        gateway: Gateway,
        content: bytes | Json | None = None,
        *,
        model: str = "openai/gpt-4o",
        headers: dict[str, str] | None = None,
        method: str = "POST",
        query: str = "",
    ) -> httpx2.Response:
        """Sends the good request with the gateway's key, but for what is given."""
        url = f"/api/gateway/{self.path.format(model=model)}{query}"
        if not isinstance(content, bytes):
            named = {"model": model} if "model" in self.body else {}
            content = json.dumps({**self.body, **named, **(content or {})}).encode()
        sent = gateway.headers if headers is None else headers
        return gateway.client.request(method, url, content=content, headers=sent)


ASK = [{"role": "user", "content": "Hi"}]
CONTENT = {"role": "user", "parts": [{"text": "Hi"}]}
BATCH = {"input_file_id": "file-1", "endpoint": "/v1/chat/completions", "completion_window": "24h"}
GEMINI = "v1beta/models/{model}"
MODELS_ENDPOINTS = {
    "chat": Endpoint("v1/chat/completions", "openai", {"model": "", "messages": ASK}),
    "responses": Endpoint("v1/responses", "openai", {"model": "", "input": "Hi"}),
    "completions": Endpoint("v1/completions", "openai", {"model": "", "prompt": "Hi"}),
    "embeddings": Endpoint("v1/embeddings", "openai", {"model": "", "input": "Hi"}),
    "messages": Endpoint("v1/messages", "anthropic", {"model": "", "max_tokens": 9, "messages": ASK}),
    "count_tokens": Endpoint("v1/messages/count_tokens", "anthropic", {"model": "", "messages": ASK}),
    "generateContent": Endpoint(f"{GEMINI}:generateContent", "google", {"contents": [CONTENT]}),
    "streamGenerateContent": Endpoint(f"{GEMINI}:streamGenerateContent", "google", {"contents": [CONTENT]}),
    "countTokens": Endpoint(f"{GEMINI}:countTokens", "google", {"contents": [CONTENT]}),
    "embedContent": Endpoint(f"{GEMINI}:embedContent", "google", {"content": CONTENT}),
    "batchEmbedContents": Endpoint(f"{GEMINI}:batchEmbedContents", "google", {"requests": [{"content": CONTENT}]}),
}
# What is wrong with bodies of files and of message batches is tested beside them.
JSON_ENDPOINTS = {**MODELS_ENDPOINTS, "batches": Endpoint("v1/batches", "openai", BATCH)}
ENDPOINTS = {
    **JSON_ENDPOINTS,
    "files": Endpoint("v1/files", "openai", {}),
    "message_batches": Endpoint("v1/messages/batches", "anthropic", {"requests": []}),
}


@dataclass(frozen=True)
class Raised:
    """An error as an SDK raises it; `kind` is the vendor's name of its kind, `code` the gateway's code."""

    status: int
    kind: str
    code: str
    message: str


def of_openai(response: httpx2.Response) -> Raised:
    transport = httpx2.Client(transport=httpx2.MockTransport(lambda _: _copy(response)))
    client = openai.OpenAI(api_key="k", base_url="http://gateway.test", http_client=transport, max_retries=0)
    with client, pytest.raises(_OPENAI.get(response.status_code, openai.APIStatusError)) as caught:
        client.models.list()
    error = caught.value
    body: Any = error.body
    assert set(body) == {"message", "type", "code"}
    return Raised(error.status_code, str(error.type), str(error.code), body["message"])


def of_anthropic(response: httpx2.Response) -> Raised:
    client = anthropic_client(response.status_code, response.content, response.headers["content-type"])
    with pytest.raises(_ANTHROPIC.get(response.status_code, anthropic.APIStatusError)) as caught:
        client.models.list()
    error = caught.value
    body: Any = error.body
    assert (body["type"], body["request_id"]) == ("error", response.headers["x-request-id"])
    return Raised(error.status_code, str(error.type), str(error.error_code), str(error.api_message))


def of_google(response: httpx2.Response) -> Raised:
    client = google_client(response.status_code, response.content, response.headers["content-type"])
    with pytest.raises(google.ClientError) as caught:
        client.models.generate_content(model="m", contents="Hi")
    error = caught.value
    info = error.details["error"]["details"][0]
    assert info["metadata"]["request_id"] == response.headers["x-request-id"]
    return Raised(error.code, str(error.status), info["reason"].lower(), str(error.message))


def _copy(response: httpx2.Response) -> httpx2.Response:
    return httpx2.Response(response.status_code, content=response.content, headers={"content-type": "application/json"})


_OPENAI: dict[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    404: openai.NotFoundError,
}
_ANTHROPIC: dict[int, type[anthropic.APIStatusError]] = {
    400: anthropic.BadRequestError,
    401: anthropic.AuthenticationError,
    404: anthropic.NotFoundError,
}
SDKS: dict[str, Callable[[httpx2.Response], Raised]] = {
    "openai": of_openai,
    "anthropic": of_anthropic,
    "google": of_google,
}
KINDS: dict[str, dict[int, str]] = {
    "openai": {401: "authentication_error", 404: "not_found_error"},
    "anthropic": {401: "authentication_error", 404: "not_found_error", 413: "request_too_large"},
    "google": {401: "UNAUTHENTICATED", 404: "NOT_FOUND", 405: "UNIMPLEMENTED"},
}
BAD_REQUEST = {"openai": "invalid_request_error", "anthropic": "invalid_request_error", "google": "INVALID_ARGUMENT"}


def refusal(endpoint: Endpoint, response: httpx2.Response, status: int, code: str) -> str:
    """Returns the message of an error, which has the status, the vendor's kind for it, and the code."""
    assert response.status_code == status, response.text[:500]
    raised = SDKS[endpoint.protocol](response)
    kind = KINDS[endpoint.protocol].get(status, BAD_REQUEST[endpoint.protocol])
    assert (raised.status, raised.kind, raised.code) == (status, kind, code)
    return raised.message


@pytest.fixture(scope="module")
def script(upstream: ScriptedServer) -> Script:
    """The provider of `every`, which receives nothing."""
    return upstream.play("bad-input", answer())


@pytest.fixture(scope="module")
def project(service: GatewayService, upstream: ScriptedServer, script: Script) -> Gateway:
    url = upstream.base_url("bad-input")
    made = service.new_project(
        base_urls=dict.fromkeys(("openai", "anthropic", "google", "groq", "mistral", "cohere"), url)
    )
    made.upstream = upstream
    return made


@pytest.fixture
def every(project: Gateway, script: Script) -> Iterator[Gateway]:
    """A project at a vendor of each protocol and at one that no client's protocol is native to. None of them is
    asked."""
    yield project
    assert script.received == []


@pytest.mark.parametrize("name", JSON_ENDPOINTS)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"model": ', "The request body is not valid JSON"),
        (b"", "The request body is not valid JSON"),
        (b'{"note": "\xff"}', "The request body is not valid JSON"),
        (b"[]", "The request body has to be a JSON object"),
        (b'"Hi"', "The request body has to be a JSON object"),
    ],
    ids=["cut", "empty", "no-utf8", "list", "text"],
)
def test_body__that_is_no_json_object__is_the_sdks_bad_request(
    every: Gateway, name: str, content: bytes, message: str
) -> None:
    endpoint = JSON_ENDPOINTS[name]

    assert refusal(endpoint, endpoint.send(every, content), 400, "invalid_json") == message


@pytest.mark.parametrize("name", JSON_ENDPOINTS)
def test_body__above_the_bound__is_413(every: Gateway, name: str) -> None:
    endpoint = JSON_ENDPOINTS[name]

    assert "33554432 bytes" in refusal(endpoint, endpoint.send(every, TOO_LARGE), 413, "message_too_large")


@pytest.mark.parametrize("name", MODELS_ENDPOINTS)
def test_model__that_no_integration_serves__is_not_found(every: Gateway, name: str) -> None:
    endpoint = MODELS_ENDPOINTS[name]

    assert UNKNOWN_MODEL in refusal(endpoint, endpoint.send(every, model=UNKNOWN_MODEL), 404, "model_not_found")


@pytest.mark.parametrize("name", ENDPOINTS)
@tabled
def test_key__that_is_missing_or_unknown__is_the_sdks_authentication_error(
    every: Gateway, name: str, headers: dict[str, str], code: str
) -> None:
    """The key is judged before the body, which is bad here."""
    endpoint = ENDPOINTS[name]
    sent = {header: value.format(key=every.key) for header, value in headers.items()}

    answer = endpoint.send(every, b"{", headers=sent)

    message = refusal(endpoint, answer, 401, code)
    assert code == "invalid_api_key" or "x-api-key" in message
    assert every.key not in answer.text
    assert WRONG_KEY not in answer.text


@pytest.mark.parametrize("name", JSON_ENDPOINTS)
@pytest.mark.parametrize("header", ["authorization", "x-api-key", "x-goog-api-key"])
def test_key__in_the_header_of_any_vendor__is_taken(every: Gateway, name: str, header: str) -> None:
    endpoint = JSON_ENDPOINTS[name]
    value = f"Bearer {every.key}" if header == "authorization" else every.key

    answer = endpoint.send(every, b"{", headers={header: value})

    refusal(endpoint, answer, 400, "invalid_json")


@pytest.mark.parametrize("name", ENDPOINTS)
@pytest.mark.parametrize("parameter", ["key", "api_key"])
def test_key__in_the_address__is_no_key_and_stays_out_of_answer_and_log(
    every: Gateway, name: str, parameter: str
) -> None:
    """Google's clients may send theirs there, and are told where it belongs."""
    endpoint = ENDPOINTS[name]
    is_googles = endpoint.protocol == "google" and parameter == "key"

    answer = endpoint.send(every, headers={}, query=f"?{parameter}={every.key}")

    status, code = (400, "invalid_value") if is_googles else (401, "missing_api_key")
    assert "x-goog-api-key" in refusal(endpoint, answer, status, code)
    assert every.key not in answer.text
    log = every.service.log.read_text(errors="replace")
    assert every.key not in log
    assert "?key=" not in log


@pytest.mark.parametrize("name", ENDPOINTS)
def test_method__that_the_path_does_not_have__is_405_and_names_those_it_has(every: Gateway, name: str) -> None:
    endpoint = ENDPOINTS[name]

    answer = endpoint.send(every, method="PATCH")

    allowed = answer.headers["allow"]
    assert allowed == ("POST" if name in MODELS_ENDPOINTS else "GET, HEAD, POST")
    assert refusal(endpoint, answer, 405, "method_not_allowed") == f"Use {allowed}"


@tabled
def test_path__that_is_not_there__is_not_found_in_its_clients_protocol(
    every: Gateway, path: str, protocol: str, headers: dict[str, str]
) -> None:
    endpoint = Endpoint(path, protocol, {})

    answer = endpoint.send(every, headers=headers, query=f"?key={every.key}")

    assert refusal(endpoint, answer, 404, "not_found") == f"The gateway has no /api/gateway/{path}"


def _user(*parts: Any) -> list[Json]:
    return [{"role": "user", "content": list(parts)}]


def _contents(*parts: Any) -> Json:
    return {"contents": [{"role": "user", "parts": list(parts)}]}


NUMBER = {"type": "text", "text": 7}
NATIVE = {"openai": "openai/gpt-4o", "anthropic": "anthropic/claude-sonnet-4-5", "google": "google/gemini-2.5-pro"}
TRANSLATED = "groq/llama-3.3-70b-versatile"
WRONG_PARTS: list[tuple[str, Json, str]] = [
    ("chat", {"messages": _user(NUMBER)}, "messages[0].content[0].text: "),
    ("chat", {"messages": _user(7)}, "messages[0].content[0]: "),
    ("chat", {"messages": _user({"type": "image_url", "image_url": {"url": 7}})}, "messages[0].content[0].image_url.u"),
    ("responses", {"input": _user({"type": "input_text", "text": 7})}, "input[0].content[0].text: "),
    ("responses", {"input": _user(7)}, "input[0].content[0]: "),
    ("responses", {"input": _user({"type": "input_image", "image_url": 7})}, "input[0].content[0].image_url: "),
    ("responses", {"input": 7}, "input: "),
    ("completions", {"prompt": ["a", {}]}, "prompt[1]: "),
    ("embeddings", {"input": {"text": "a"}}, "input: "),
    ("messages", {"messages": _user(NUMBER)}, "messages[0].content[0].text: "),
    ("messages", {"system": [NUMBER]}, "system[0].text: "),
    ("count_tokens", {"messages": _user(NUMBER)}, "messages[0].content[0].text: "),
    ("count_tokens", {"messages": 7}, "messages: "),
    *(
        (method, fields, message)
        for method in ("generateContent", "streamGenerateContent", "countTokens")
        for fields, message in (
            (_contents({"hologram": {}}), "contents[0].parts[0]: "),
            (_contents({"text": 7}), "contents[0].parts[0].text: "),
            (_contents({"inlineData": 7}), "contents[0].parts[0].inlineData: "),
        )
    ),
    (
        "countTokens",
        {"contents": None, "generateContentRequest": _contents({"text": 7})},
        "generateContentRequest.contents[0].parts[0].text: ",
    ),
    ("embedContent", {"content": {"parts": [{"text": 7}]}}, "content.parts[0].text: "),
    ("batchEmbedContents", {"requests": [{"content": {"parts": [7]}}]}, "requests[0].content.parts[0]: "),
    ("batches", {"input_file_id": 7}, "input_file_id: "),
    ("batches", {"endpoint": ["a"]}, "endpoint: "),
]


@pytest.mark.parametrize("is_native", [True, False], ids=["native", "translated"])
@pytest.mark.parametrize(("name", "fields", "message"), WRONG_PARTS)
def test_part__of_a_wrong_shape__is_refused_by_the_clients_field(
    every: Gateway, name: str, fields: Json, message: str, is_native: bool
) -> None:
    endpoint = JSON_ENDPOINTS[name]
    model = NATIVE[endpoint.protocol] if is_native else TRANSLATED

    refused = refusal(endpoint, endpoint.send(every, fields, model=model), 400, "invalid_value")

    assert refused.startswith(message)


@tabled
def test_part__that_the_provider_cannot_know__is_refused_by_the_clients_field(
    every: Gateway, name: str, model: str, fields: Json, message: str
) -> None:
    """A provider of the client's own protocol gets it, and says itself what it does not know."""
    endpoint = JSON_ENDPOINTS[name]

    refused = refusal(endpoint, endpoint.send(every, fields, model=model), 400, "unsupported_parameter")

    assert refused.startswith(message)
