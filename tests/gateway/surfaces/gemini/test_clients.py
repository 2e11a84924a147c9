"""Google's SDK, unchanged, on the Gemini API of the gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

from tests.clients.page import snippets_below
from tests.gateway.service import Gateway

MODEL = "openai_compatible/echo"
ASK = "Say hello"


class City(BaseModel):
    name: str
    days: int


@pytest.fixture(params=["v1beta", "v1alpha", "v1"])
def client(sandboxed: Gateway, request: pytest.FixtureRequest) -> Iterator[genai.Client]:
    options = types.HttpOptions(base_url=f"{sandboxed.service.base_url()}/api/gateway", api_version=request.param)
    with genai.Client(api_key=sandboxed.key, http_options=options) as made:
        yield made


def test_content__whole_and_streamed__is_the_same_answer(client: genai.Client) -> None:
    config = types.GenerateContentConfig(system_instruction="Be brief.", max_output_tokens=50)
    whole = client.models.generate_content(model=MODEL, contents=ASK, config=config)

    chunks = [*client.models.generate_content_stream(model=MODEL, contents=ASK, config=config)]

    assert whole.text
    assert "".join(chunk.text or "" for chunk in chunks) == whole.text
    assert whole.usage_metadata is not None
    assert chunks[-1].usage_metadata == whole.usage_metadata
    assert whole.candidates is not None
    assert whole.candidates[0].finish_reason is types.FinishReason.STOP
    assert whole.model_version == "echo"


def test_tool__is_called_with_its_arguments_and_its_result_is_read(client: genai.Client) -> None:
    declared = types.FunctionDeclaration(name="get_city", parameters_json_schema=City.model_json_schema())
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    chat = client.chats.create(model="openai_compatible/echo", config=config)

    first = chat.send_message("Paris")
    assert first.function_calls is not None
    (call,) = first.function_calls
    assert call.name == "get_city"
    result = types.Part.from_function_response(name="get_city", response={"output": "sunny"})
    second = chat.send_message([result])

    assert second.text


def test_tokens__are_counted(client: genai.Client) -> None:
    assert client.models.count_tokens(model=MODEL, contents=ASK).total_tokens


def test_snippet_of_the_page__run_as_it_stands__prints_what_it_says(
    sandboxed: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (snippet,) = snippets_below("Google Gen AI SDK")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"{sandboxed.service.base_url()}/api/gateway")
    monkeypatch.setenv("GEMINI_API_KEY", sandboxed.key)

    exec(compile(snippet.source.replace("sandbox/echo", MODEL), "clients.md", "exec"), {})  # noqa: S102 - our own page

    assert capsys.readouterr().out.splitlines() == snippet.printed


def test_key_that_is_wrong__is_the_sdks_own_error(sandboxed: Gateway) -> None:
    options = types.HttpOptions(base_url=f"{sandboxed.service.base_url()}/api/gateway")
    with genai.Client(api_key="svc_wrong", http_options=options) as client, pytest.raises(errors.APIError) as refused:
        client.models.generate_content(model=MODEL, contents=ASK)

    assert (refused.value.code, refused.value.status) == (401, "UNAUTHENTICATED")


def test_model_that_is_unknown__is_the_sdks_own_error(client: genai.Client) -> None:
    with pytest.raises(errors.ClientError) as refused:
        client.models.generate_content(model="anthropic/claude-x", contents=ASK)

    assert (refused.value.code, refused.value.status) == (404, "NOT_FOUND")
