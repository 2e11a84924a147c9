from __future__ import annotations

import json

import pytest

from integrations.providers.errors import FailureKind, ProviderError
from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, credentials


@pytest.mark.parametrize(
    ("base_url", "extra", "url"),
    [
        (
            "https://res.openai.azure.com/",
            {},
            "https://res.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
        ),
        (
            "https://res.openai.azure.com",
            {"api_version": "2025-01-01-preview", "deployment": "my dep/1"},
            "https://res.openai.azure.com/openai/deployments/my%20dep%2F1/chat/completions"
            "?api-version=2025-01-01-preview",
        ),
        ("https://res.openai.azure.com/openai/v1", {}, "https://res.openai.azure.com/openai/v1/chat/completions"),
        (
            "https://res.services.ai.azure.com/models",
            {"api_version": "2024-05-01-preview"},
            "https://res.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview",
        ),
        (
            "https://proxy.example/openai/deployments/fixed",
            {},
            "https://proxy.example/openai/deployments/fixed/chat/completions?api-version=2024-10-21",
        ),
    ],
)
def test_build_request__each_layout__documented_address(base_url: str, extra: dict[str, str], url: str) -> None:
    made = adapter_for("azure_openai").build_request(chat_request(), credentials("azure_openai", base_url, **extra))
    assert made.url == url
    assert made.headers["api-key"] == "sk-test"
    assert "authorization" not in made.headers
    assert json.loads(made.body)["model"] == "gpt-4o"


def test_build_request__no_base_url__credentials_at_fault() -> None:
    with pytest.raises(ProviderError, match="base_url") as caught:
        adapter_for("azure_openai").build_request(chat_request(), credentials("azure_openai"))
    assert caught.value.kind is FailureKind.CREDENTIALS
