"""Tests streams of the Messages API that report an error, break off or are malformed."""

from __future__ import annotations

import pytest

from integrations.providers.anthropic import ADAPTER
from integrations.providers.errors import ProviderError
from tests.integrations.anthropic_events import event, translator
from tests.integrations.exchanges import chat_request, credentials, run


def error(kind: str, message: str = "no luck") -> bytes:
    return event("error", error={"type": kind, "message": message})


def test_error__with_the_key_in_it__redacted() -> None:
    ADAPTER.build_request(chat_request("claude-x"), credentials("anthropic", key="a-key-of-an-odd-form"))
    with pytest.raises(ProviderError) as caught:
        run(translator(), [error("api_error", "bad a-key-of-an-odd-form")])
    assert "a-key-of-an-odd-form" not in str(caught.value)
