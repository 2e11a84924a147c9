"""Tests models of other publishers on Vertex AI: their publisher, their address and their dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mistralai.gcp.client import MistralGCP
from mistralai.gcp.client.models import UserMessage
from msgspec.structs import replace

from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.errors import FailureKind, ProviderError, UnsupportedParameterError
from integrations.providers.usage import Usage
from integrations.providers.vertex.publishers import publisher_model
from integrations.registry import adapter_for
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.story import Call, Story
from tests.fakes.upstream import Connection, Received, UpstreamServer
from tests.integrations.adapters.rules import assert_taken
from tests.integrations.exchanges import chat_request, completion, decoded, run
from tests.integrations.mistral_sdk import assert_accepted

VERTEX = adapter_for("google_vertex")
ROOT = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5"
TOKEN = "ya29.token"
LLAMA = "meta/llama-4-maverick-17b-128e-instruct-maas"
MISTRAL = "mistral-medium-3"
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}


def access(secret: str = TOKEN, **options: str) -> Credentials:
    return Credentials(1, "google_vertex", "", secret, {"project": "p", "location": "us-east5", **options})


def built(model: str, credentials: Credentials | None = None, **fields: Any) -> UpstreamRequest:
    return VERTEX.build_request(chat_request(model, **fields), credentials or access())


def body_of(model: str, **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(built(model, **fields).body)
    return body


@pytest.mark.parametrize(
    ("name", "publisher", "model"),
    [
        ("gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("google/gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("publishers/google/models/gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("models/gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("endpoints/123", "google", "endpoints/123"),
        ("meta/llama-3.3-70b-instruct-maas", "meta", "llama-3.3-70b-instruct-maas"),
        ("publishers/meta/models/llama3-8b-instruct-maas", "meta", "llama3-8b-instruct-maas"),
        ("llama-4-scout-17b-16e-instruct-maas", "meta", "llama-4-scout-17b-16e-instruct-maas"),
        ("mistral-large@2407", "mistralai", "mistral-large@2407"),
        ("codestral-2501", "mistralai", "codestral-2501"),
        ("mistralai/mistral-small-2503", "mistralai", "mistral-small-2503"),
        ("claude-opus-4-8@default", "anthropic", "claude-opus-4-8@default"),
        ("gpt-oss-120b-maas", "openai", "gpt-oss-120b-maas"),
        ("deepseek-ai/deepseek-v3.2-maas", "deepseek-ai", "deepseek-v3.2-maas"),
    ],
)
def test_name__any_form__whose_it_is(name: str, publisher: str, model: str) -> None:
    assert publisher_model(name) == (publisher, model)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", [LLAMA, "publishers/meta/models/llama-4-maverick-17b-128e-instruct-maas"])
def test_llama__any_request__at_googles_own_chat_completions(name: str, stream: bool) -> None:
    upstream = built(name, stream=stream, max_completion_tokens=7, developer="x")
    assert upstream.url == f"{ROOT}/endpoints/openapi/chat/completions"
    assert upstream.headers["authorization"] == "Bearer ya29.token"
    body = json.loads(upstream.body)
    assert (body["model"], body["max_tokens"]) == (LLAMA, 7)
    assert body.get("stream_options") == ({"include_usage": True} if stream else None)


@pytest.mark.parametrize("model", ["qwen/qwen3-235b-a22b-instruct-2507-maas", "moonshotai/kimi-k2-thinking-maas"])
def test_open_model__of_any_publisher__under_its_publishers_name(model: str) -> None:
    assert built(model).url.endswith("/endpoints/openapi/chat/completions")
    assert body_of(model)["model"] == model


def test_open_model__thinking__a_level_where_the_model_has_one() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000}
    assert body_of("openai/gpt-oss-120b-maas", thinking=thinking)["reasoning_effort"] == "low"
    dropped = built(LLAMA, thinking=thinking)
    assert "thinking" not in json.loads(dropped.body)
    assert dropped.warnings[0].startswith("thinking")


@pytest.mark.parametrize(("stream", "method"), [(False, "rawPredict"), (True, "streamRawPredict")])
def test_mistral__any_request__in_its_own_dialect_under_its_own_address(stream: bool, method: str) -> None:
    upstream = built(
        f"mistralai/{MISTRAL}",
        stream=stream,
        messages=[{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        tools=[WEATHER],
        tool_choice="required",
        seed=3,
    )
    assert upstream.url == f"{ROOT}/publishers/mistralai/models/{MISTRAL}:{method}"
    assert upstream.headers["authorization"] == "Bearer ya29.token"
    body = json.loads(upstream.body)
    assert_accepted(body)
    assert (body["model"], body["random_seed"], body["tool_choice"]) == (MISTRAL, 3, "any")
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


def test_mistral__version_in_the_name__in_the_address_alone() -> None:
    upstream = built("mistral-large@2407")
    assert upstream.url.endswith("/publishers/mistralai/models/mistral-large@2407:rawPredict")
    assert json.loads(upstream.body)["model"] == "mistral-large"


@pytest.fixture
def googles_front() -> Iterator[tuple[str, list[Received]]]:
    requests: list[Received] = []

    async def answer(received: Received, connection: Connection) -> None:
        requests.append(received)
        await connection.send_whole(200, json.dumps(completion()).encode(), {"content-type": "application/json"})

    with UpstreamServer(answer) as server:
        yield server.url, requests


def test_mistral__called_by_its_official_sdk__the_same_path_and_body(googles_front: tuple[str, list[Received]]) -> None:
    url, requests = googles_front
    sdk = MistralGCP(project_id="p", region="us-east5", access_token="ya29.token", server_url=url)
    sdk.chat.complete(model=MISTRAL, messages=[UserMessage(content="Hi")])
    ours = built(MISTRAL, messages=[{"role": "user", "content": "Hi"}])
    assert ours.url.removeprefix("https://us-east5-aiplatform.googleapis.com") == requests[0].path
    sent = json.loads(requests[0].body)
    assert json.loads(ours.body) == {name: sent[name] for name in ("model", "messages")}
    assert requests[0].headers["authorization"] == ours.headers["authorization"]


@pytest.mark.parametrize(("model", "dialect"), [(LLAMA, "openai_compatible"), (MISTRAL, "mistral")])
def test_answer__of_a_partner__whole_and_streamed_as_in_its_dialect(model: str, dialect: str) -> None:
    story = Story(
        text="Hallo", calls=(Call("callAAA01", "get_weather", {"city": "Oslo"}),), finish="tool_calls",
        usage=Usage(prompt_tokens=9, completion_tokens=4),
    )  # fmt: skip
    parsed = VERTEX.parse_response(chat_request(model), FAKES[dialect].whole(story).body)
    choice = json.loads(parsed.body)["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hallo", "tool_calls")
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert parsed.usage == Usage(prompt_tokens=9, completion_tokens=4)
    stream = VERTEX.stream(chat_request(model, stream=True))
    chunks = decoded(run(stream, FAKES[dialect].stream(story).events))
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == "Hallo"
    assert stream.usage == Usage(prompt_tokens=9, completion_tokens=4)
    assert (stream.finish_reason, chunks[-1]["usage"]["total_tokens"]) == ("tool_calls", 13)


@pytest.mark.parametrize("model", [LLAMA, MISTRAL])
def test_answer__that_is_none__unusable_in_this_providers_name(model: str) -> None:
    with pytest.raises(ProviderError) as caught:
        VERTEX.parse_response(chat_request(model), b"{}")
    assert (caught.value.kind, caught.value.provider) == (FailureKind.UNUSABLE, "google_vertex")


@pytest.mark.parametrize("model", [LLAMA, MISTRAL])
def test_service_account__of_partners__a_token_too(model: str) -> None:
    account = access(json.dumps({"type": "service_account", "project_id": "p"}))
    request = chat_request(model)
    assert VERTEX.needs(request, account).access_token
    assert not VERTEX.needs(request, access()).access_token
    upstream = VERTEX.build_request(replace(request, access_token="ya29.fresh"), account)
    assert upstream.headers["authorization"] == "Bearer ya29.fresh"
    assert b"service_account" not in upstream.body


@pytest.mark.parametrize("model", [LLAMA, MISTRAL])
def test_express_mode__partners_model__not_there(model: str) -> None:
    with pytest.raises(ProviderError) as caught:
        built(model, Credentials(1, "google_vertex", "", "AIzaSyKey"))
    assert caught.value.kind is FailureKind.NOT_FOUND


def test_publisher__whose_dialect_nothing_speaks__not_there() -> None:
    with pytest.raises(ProviderError, match="ai21") as caught:
        built("ai21/jamba-1.5-large")
    assert caught.value.kind is FailureKind.NOT_FOUND


@pytest.mark.parametrize("model", ["mistralai/", "meta/", "meta/ .."])
def test_name__of_no_model__refused(model: str) -> None:
    with pytest.raises(UnsupportedParameterError, match="model"):
        built(model)


def test_gemini__beside_the_partners__in_googles_dialect() -> None:
    upstream = built("google/gemini-2.5-flash", stream=True)
    assert upstream.url == f"{ROOT}/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert_taken("google_vertex", json.loads(upstream.body))


@pytest.mark.parametrize("location", ["us", "eu"])
def test_location__several_regions_at_once__a_host_of_their_own(location: str) -> None:
    url = built("gemini-2.5-flash", access(location=location)).url
    assert url.startswith(f"https://aiplatform.{location}.rep.googleapis.com/v1/projects/p/locations/{location}/")


@pytest.mark.parametrize("model", ["meta/../../x", "mistralai/..%2f..", "mistralai/a/b?c#d"])
def test_name__that_wants_out_of_its_place__stays_in_it(model: str) -> None:
    url = built(model).url
    assert url.startswith(ROOT)
    assert ".." not in url.split("/")
    assert url.count("?") == url.count("#") == 0


def test_failure__echoes_a_secret__taken_out_whoever_answered() -> None:
    built(MISTRAL, access("ya29.an-access-token"))
    for body in (
        b'[{"error": {"code": 401, "message": "bad ya29.an-access-token"}}]',
        b'{"message": "bad ya29.an-access-token"}',
    ):
        assert VERTEX.classify_failure(401, {}, body).message == "bad [redacted]"
