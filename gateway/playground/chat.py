from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.errors import ValidationError
from gateway.protocol.wire import decode_request, nested_too_deeply

FIELDS = (
    "messages", "temperature", "max_tokens", "max_completion_tokens", "top_p", "stop", "frequency_penalty",
    "presence_penalty", "user", "seed", "tools", "tool_choice", "response_format", "thinking", "reasoning_effort",
    "models", "provider", "prompt_config", "prompt_variables",
)  # fmt: skip
"""The fields of a chat completion that the playground passes on beside the model. There is no `n`, because one
answer is shown."""


def chat_body(model: str, given: Mapping[str, Any], *, stream: bool = False) -> bytes:
    fields: dict[str, Any] = {"model": model}
    fields.update((name, given[name]) for name in FIELDS if given.get(name) is not None)
    if stream:
        fields["stream"] = True
    try:
        body = json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise nested_too_deeply() from None
    except ValueError:
        raise ValidationError("The request holds a number that is out of range") from None
    try:
        decode_request(body)
    except ValidationError as error:
        field, _, reason = error.message.partition(": ")
        details = {field: [reason]} if reason else None
        raise ValidationError(error.message, code=error.code, details=details) from None
    return body
