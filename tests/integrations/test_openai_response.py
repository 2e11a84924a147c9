from __future__ import annotations

import json
from typing import Any

from integrations.providers.base import ParsedResponse
from integrations.providers.usage import Usage
from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, completion


def parsed(answer: Any, provider: str = "openai") -> ParsedResponse:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return adapter_for(provider).parse_response(chat_request(), body)


def test_parse_response__conforming__same_bytes() -> None:
    body = json.dumps(completion(vendor={"kept": True}), indent=1).encode()
    answer = parsed(body)
    assert answer.body is body
    assert (answer.model, answer.finish_reason) == ("gpt-4o-2024-08-06", "stop")
    assert answer.usage == Usage(prompt_tokens=9, completion_tokens=4)
