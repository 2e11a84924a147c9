"""Reads whole answers of Mistral: adds `reasoning_details` and the parts before the shared code of the OpenAI dialect
reads them, which turns the text of thinking parts into `reasoning_content`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from integrations.providers.common.completion import reasoning_text
from integrations.providers.common.surrogates import lenient
from integrations.providers.mistral.references import MARK, parts_of
from integrations.providers.mistral.thinking import FORMAT, read_part, thinking_parts

_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


def with_details(body: bytes) -> bytes:
    """Returns the answer with `reasoning_details` beside its thinking parts, and with the parts themselves where there
    are references among them; the same bytes when it has neither."""
    if b'"thinking"' not in body and MARK not in body:
        return body
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body  # The body is no answer, which the parser reports.
    changed = False
    choices = answer.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if not isinstance(message, dict):
            continue
        if details := list(_details(message)):
            message["reasoning_details"] = details
            changed = True
        if parts := parts_of(message.get("content")):
            message["provider_specific_fields"] = {"content": parts}
            changed = True
    return msgspec.json.encode(answer) if changed else body


def _details(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for index, part in enumerate(thinking_parts(message)):
        text, signature = read_part(part)
        yield reasoning_text(text, format=FORMAT, signature=signature, index=index)
