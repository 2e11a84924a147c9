from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.surfaces import shapes
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.checks import Json
from gateway.surfaces.gemini.answer_parts import Signatures, image_part, own_part, part_of_call, signed_calls
from gateway.surfaces.gemini.finish import (
    FEEDBACK,
    FILTER,
    end_of,
    grounding_of,
    is_blocked,
    logprobs_of,
    origin_of,
    reason_of,
    usage_of,
)
from gateway.surfaces.tool_names import restore_names
from integrations.providers.google.messages import image_id
from integrations.providers.google.specifics import PARTS, insert_parts

_encode = msgspec.json.Encoder().encode


def response_of(request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
    answer = shapes.decode(completion)
    made: Json = {"candidates": []}
    for choice in answer.choices:
        message = choice.message or shapes.Message()
        if message.content and choice.logprobs is None and message.is_text_alone():
            made["candidates"].append(_of_text(message.content, choice))
            continue
        if request.tool_names:
            restore_names(message, request.tool_names)
        specific = message.provider_specific_fields or {}
        if not is_blocked(specific) or message.content:
            made["candidates"].append(_candidate(choice, message, specific, shows_thoughts=bool(request.echo)))
        if specific.get(FEEDBACK) is not None:
            made[FEEDBACK] = specific[FEEDBACK]
    if not made["candidates"] and FEEDBACK in made:
        del made["candidates"]
    return _encode({**made, "usageMetadata": usage_of(answer.usage), **origin_of(answer.model, answer.id, request_id)})


def count_body(tokens: int) -> bytes:
    return _encode({"totalTokens": tokens})


def tokens_of(completion: bytes) -> int:
    counted: int = usage_of(shapes.decode(completion).usage)["promptTokenCount"]
    return counted


def _of_text(text: str, choice: shapes.Choice) -> Json:
    content = {"parts": [{"text": text}], "role": "model"}
    return {"content": content, "finishReason": reason_of(choice.finish_reason), "index": choice.index}


def _candidate(
    choice: shapes.Choice, message: shapes.Message, specific: Mapping[str, Any], *, shows_thoughts: bool
) -> Json:
    refusal, text = message.refusal or "", message.content or ""
    parts = _parts(message, specific, shows_thoughts=shows_thoughts)
    if refusal and not parts and choice.finish_reason != FILTER:
        parts = [{"text": refusal}]
    sources = {} if "groundingMetadata" in specific else grounding_of(message.annotations or (), text)
    return {
        "content": {"parts": parts, "role": "model"},
        **end_of(choice.finish_reason, specific, refusal),
        "index": choice.index,
        **sources,
        **logprobs_of(choice.logprobs),
    }


def _parts(message: shapes.Message, specific: Mapping[str, Any], *, shows_thoughts: bool) -> list[Json]:
    signatures = Signatures()
    signatures.add(message.reasoning_details or ())
    calls = signed_calls([part_of_call(call) for call in message.tool_calls or ()], signatures)
    texts = _texts(message.content or "", signatures)
    images = [part for image in message.images or () if (part := image_part(image)) is not None]
    for number, part in enumerate(images):
        if signature := signatures.of(image_id(number)):
            part["thoughtSignature"] = signature
    parts = [*texts, *images, *calls]
    own = [read for entry in specific.get(PARTS) or () if (read := own_part(entry)) is not None]
    if own:
        parts = insert_parts(parts, own)
    _sign_last(parts, signatures)
    thoughts = message.reasoning_content if shows_thoughts else None
    return [{"text": thoughts, "thought": True}, *parts] if thoughts else parts


def _texts(text: str, signatures: Signatures) -> list[Json]:
    parts: list[Json] = []
    done = 0
    for start, end, signature in signatures.stretches():
        start, end = max(done, min(start, len(text))), max(done, min(end, len(text)))
        if start > done:
            parts.append({"text": text[done:start]})
        parts.append({"text": text[start:end], "thoughtSignature": signature})
        done = end
    return [*parts, {"text": text[done:]}] if text[done:] else parts


def _sign_last(parts: list[Json], signatures: Signatures) -> None:
    """Puts the signatures without a part after the last text, as Google does."""
    rest = [one for one in (signatures.seal(), *signatures.left()) if one]
    if rest and parts and "text" in parts[-1] and "thoughtSignature" not in parts[-1]:
        parts[-1] = {**parts[-1], "thoughtSignature": rest.pop(0)}
    parts += [{"text": "", "thoughtSignature": signature} for signature in rest]
