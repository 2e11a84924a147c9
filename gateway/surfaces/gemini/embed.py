"""Gemini's embeddings (https://ai.google.dev/api/embeddings) in OpenAI's form, which every provider of embeddings
has.
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import ApplicationError, ValidationError
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.checks import Json, decoded, field_of, missing, optional_text, required_text
from gateway.surfaces.gemini.errors import error_body
from gateway.surfaces.gemini.fields import camelled, message, optional_whole_number, repeated
from gateway.surfaces.gemini.request import OF_THE_GATEWAY
from gateway.surfaces.native_only import NativeOnlySurface
from gateway.surfaces.operations import EMBEDDINGS

_MAX_DIMENSIONS = 65_536
# Google's tasks in the words of other vendors (https://docs.cohere.com/reference/embed).
_TASKS = {
    "RETRIEVAL_QUERY": "search_query",
    "RETRIEVAL_DOCUMENT": "search_document",
    "CLASSIFICATION": "classification",
    "CLUSTERING": "clustering",
}
_SETTINGS = ("taskType", "outputDimensionality")

_encode = msgspec.json.Encoder().encode


class _Row(msgspec.Struct):
    embedding: msgspec.Raw


class _Answer(msgspec.Struct):
    data: list[_Row]
    usage: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Answer).decode


class EmbedSurface(NativeOnlySurface):
    as_array = False

    def __init__(self, model: str, *, is_batch: bool) -> None:
        super().__init__(EMBEDDINGS.operation, EMBEDDINGS.read)
        self.name = "gemini"
        self.model, self.is_batch = model, is_batch

    def read(self, body: bytes) -> SurfaceRequest:
        return EMBEDDINGS.read(self.forwarded(body))

    def forwarded(self, body: bytes) -> bytes:
        fields = decoded(body)
        own = {name: fields[name] for name in fields if name in OF_THE_GATEWAY}
        asked = self._asked({name: fields[name] for name in fields if name not in own})
        made: Json = {**own, "model": self.model, "input": [_text_of(one, place) for one, place in asked]}
        first, place = asked[0]
        if any(one.get(name) != first.get(name) for one, _ in asked for name in _SETTINGS):
            raise ValidationError("requests: all of one batch have the same taskType and outputDimensionality")
        dimensions = optional_whole_number(first, "outputDimensionality", place, minimum=1, maximum=_MAX_DIMENSIONS)
        if dimensions is not None:
            made["dimensions"] = dimensions
        if task := optional_text(first, "taskType", place):
            made["input_type"] = _TASKS.get(task, task)
        return _encode(made)

    def _asked(self, fields: Json) -> list[tuple[Json, str]]:
        fields = camelled(fields)
        if not self.is_batch:
            config = message(fields.get("embedContentConfig") or {}, "embedContentConfig")
            return [({**config, **fields}, "")]
        requests = repeated(fields, "requests")
        if not requests:
            raise missing("requests")
        return [(message(one, f"requests[{n}]"), f"requests[{n}]") for n, one in enumerate(requests)]

    def embedded(self, answer: bytes) -> bytes:
        found = _decode(answer)
        rows = [{"values": row.embedding} for row in found.data]
        made: Json = {"embeddings": rows} if self.is_batch else {"embedding": rows[0]}
        if found.usage is not None and (tokens := found.usage.get("prompt_tokens")):
            made["usageMetadata"] = {"promptTokenCount": tokens}
        return _encode(made)

    def error(self, error: ApplicationError, request_id: str) -> bytes:
        return error_body(error, request_id)


def _text_of(request: Json, place: str) -> str:
    where = field_of(place, "content")
    if request.get("content") is None:
        raise missing(where)
    parts = repeated(message(request["content"], where), "parts", where)
    return "\n".join(
        required_text(message(part, f"{where}.parts[{n}]"), "text", f"{where}.parts[{n}]")
        for n, part in enumerate(parts)
    )
