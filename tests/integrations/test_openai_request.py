from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.base import ChatRequest
from integrations.providers.errors import FailureKind, UnsupportedParameterError
from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, credentials


def built(request: ChatRequest, provider: str = "openai") -> dict[str, Any]:
    upstream_request = adapter_for(provider).build_request(request, credentials(provider, "http://127.0.0.1:1/v1"))
    body: dict[str, Any] = json.loads(upstream_request.body)
    return body


def test_build_request__nothing_to_change__same_bytes() -> None:
    request = chat_request(temperature=0.50, unknown_field={"kept": [1.0, 1e2]})
    upstream_request = adapter_for("openai").build_request(request, credentials())
    assert upstream_request.body is request.body
    assert upstream_request.method == "POST"
    assert upstream_request.url == "https://api.openai.com/v1/chat/completions"
    assert upstream_request.headers["authorization"] == "Bearer sk-test"
    assert upstream_request.headers["content-type"] == "application/json"


def test_build_request__prefixed_model__only_the_name_changes() -> None:
    body = b'{ "model" : "openai/gpt-4o", "messages": [ {"role":"user","content":"\\u00fc \xc3\xbc"} ], "seed": 1.0 }'
    fields = json.loads(body)
    request = adapter_for("openai").build_request(ChatRequest("gpt-4o", False, body, fields), credentials())
    # Values keep their bytes: escapes, inner white space and the notation of numbers.
    assert b'[ {"role":"user","content":"\\u00fc \xc3\xbc"} ]' in request.body
    assert b"1.0" in request.body
    assert json.loads(request.body) == {**fields, "model": "gpt-4o"}


def test_build_request__stream__usage_requested_beside_the_clients_options() -> None:
    assert built(chat_request(stream=True))["stream_options"] == {"include_usage": True}
    sent = chat_request(stream=True, stream_options={"include_usage": False, "include_obfuscation": False})
    assert built(sent)["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert "stream_options" not in built(chat_request(stream=True), "mistral")
    assert "stream_options" not in built(chat_request())


def test_build_request__own_fields__never_sent() -> None:
    request = chat_request(
        models=["a"], provider={"only": ["openai"]}, prompt_config="c", prompt_variables={"a": 1}, vendor_field=2
    )
    body = built(request)
    assert set(body) == {"model", "messages", "vendor_field"}


def test_build_request__same_credentials__endpoint_made_once() -> None:
    adapter, access = adapter_for("openai"), credentials(base_url="https://proxy.example/v1/")
    first, second = (adapter.build_request(chat_request(), access) for _ in range(2))
    assert first.url == "https://proxy.example/v1/chat/completions"
    assert first.headers is second.headers
    rotated = adapter.build_request(chat_request(), credentials(base_url="https://proxy.example/v1", key="sk-new"))
    assert rotated.headers["authorization"] == "Bearer sk-new"


def test_build_request__no_key__no_authorization() -> None:
    access = credentials("ollama", "http://127.0.0.1:11434/v1", key="")
    assert "authorization" not in adapter_for("ollama").build_request(chat_request(), access).headers


DATA_URL = "data:application/pdf;base64,JVBERi0="


def with_document(url: str) -> ChatRequest:
    parts = [{"type": "text", "text": "Read"}, {"type": "document_url", "document_url": {"url": url}}]
    return chat_request(messages=[{"role": "user", "content": parts}])


def document_part(request: ChatRequest, provider: str) -> Any:
    return built(request, provider)["messages"][0]["content"][1]


def test_build_request__document__in_each_providers_way() -> None:
    file = {"type": "file", "file": {"filename": "document.pdf", "file_data": DATA_URL}}
    assert document_part(with_document(DATA_URL), "openai") == file
    address = "https://example.org/a/report.pdf?x=1"
    assert document_part(with_document(address), "openrouter") == {
        "type": "file",
        "file": {"filename": "report.pdf", "file_data": address},
    }
    assert document_part(with_document(address), "mistral") == {"type": "document_url", "document_url": address}
    unchanged = {"type": "document_url", "document_url": {"url": address}}
    assert document_part(with_document(address), "openai_compatible") == unchanged


@pytest.mark.parametrize(
    ("provider", "url"), [("groq", DATA_URL), ("deepseek", DATA_URL), ("together", "https://example.org/a.pdf")]
)
def test_build_request__document_a_provider_cannot_take__refused(provider: str, url: str) -> None:
    with pytest.raises(UnsupportedParameterError, match="documents") as caught:
        built(with_document(url), provider)
    assert caught.value.kind is FailureKind.REJECTED
