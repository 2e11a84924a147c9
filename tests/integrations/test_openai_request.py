from __future__ import annotations

from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, credentials


def test_build_request__nothing_to_change__same_bytes() -> None:
    request = chat_request(temperature=0.50, unknown_field={"kept": [1.0, 1e2]})
    upstream_request = adapter_for("openai").build_request(request, credentials())
    assert upstream_request.body is request.body
    assert upstream_request.method == "POST"
    assert upstream_request.url == "https://api.openai.com/v1/chat/completions"
    assert upstream_request.headers["authorization"] == "Bearer sk-test"
    assert upstream_request.headers["content-type"] == "application/json"


def test_build_request__same_credentials__endpoint_made_once() -> None:
    adapter, access = adapter_for("openai"), credentials(base_url="https://proxy.example/v1/")
    first, second = (adapter.build_request(chat_request(), access) for _ in range(2))
    assert first.url == "https://proxy.example/v1/chat/completions"
    assert first.headers is second.headers
    rotated = adapter.build_request(chat_request(), credentials(base_url="https://proxy.example/v1", key="sk-new"))
    assert rotated.headers["authorization"] == "Bearer sk-new"
