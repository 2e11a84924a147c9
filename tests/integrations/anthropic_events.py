"""Invented events of the Messages API, and the chunks that the adapter makes of them."""

from __future__ import annotations

from typing import Any

from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import StreamTranslator
from tests.integrations.exchanges import chat_request

Json = dict[str, Any]


def translator() -> StreamTranslator:
    return ADAPTER.stream(chat_request("claude-x", stream=True))
