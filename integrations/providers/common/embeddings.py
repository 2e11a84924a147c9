"""Embeddings in OpenAI's form, which all adapters translate
(https://platform.openai.com/docs/api-reference/embeddings)."""

from __future__ import annotations

import base64
import struct
from abc import abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, ParsedResponse
from integrations.providers.common.forwarder import Dialect, OperationForwarder
from integrations.providers.common.usage import read_usage
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.usage import Usage

# Four bytes for each token is the usual rule of thumb for text.
_BYTES_PER_TOKEN = 4
_FLOAT_BYTES = 4

Vector = bytes
"""One embedding as JSON: a list of numbers, or the base64 text of 32-bit floats in little-endian order."""


class EmbeddingsRequest(msgspec.Struct):
    """The fields of a validated request. `input_type` is Cohere's and NVIDIA's field."""

    model: str
    input: str | list[Any]
    dimensions: int | None = None
    encoding_format: str | None = None
    input_type: str | None = None

    @property
    def inputs(self) -> list[Any]:
        given = self.input
        return given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]

    def texts(self, provider: str) -> list[str]:
        """Raises UnsupportedParameterError for arrays of tokens."""
        if not isinstance(self.inputs[0], str):
            raise UnsupportedParameterError("input", "texts are taken here, and no tokens", provider=provider)
        return self.inputs


decode_request = msgspec.json.Decoder(EmbeddingsRequest).decode
_decode_floats = msgspec.json.Decoder(list[float]).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.encode


class EmbeddingsForwarder(OperationForwarder[Dialect]):
    """A native adapter of embeddings. `max_inputs` is the most inputs of one request to the provider; a longer request
    is sent in several."""

    max_inputs = 2048

    def inputs_at_once(self, request: ChatRequest) -> int:
        return self.max_inputs

    def parts(self, request: ChatRequest) -> Sequence[ChatRequest]:
        inputs = decode_request(request.body).inputs
        at_once = self.inputs_at_once(request)
        if len(inputs) <= at_once:
            return (request,)
        fields: dict[str, Any] = dict(_decode_object(request.body))
        bodies = (
            _encode({**fields, "input": inputs[start : start + at_once]}) for start in range(0, len(inputs), at_once)
        )
        return [msgspec.structs.replace(request, body=body, fields={}) for body in bodies]

    def joined(self, request: ChatRequest, answers: Sequence[ParsedResponse]) -> ParsedResponse:
        if len(answers) == 1:
            return answers[0]
        vectors = [vector for answer in answers for vector in vectors_of(answer.body)]
        usage = reduce(_sum, (answer.usage or Usage() for answer in answers))
        return answered(vectors, answers[0].model, usage)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        given = decode_request(request.body)
        try:
            vectors, usage = self._read(request, body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("the answer holds no embeddings") from error
        if len(vectors) != len(given.inputs):
            raise self._unusable(f"the answer holds {len(vectors)} embeddings of {len(given.inputs)} inputs")
        encoded = [in_format(vector, given.encoding_format) for vector in vectors]
        return answered(encoded, request.model, usage or estimated(given))

    @abstractmethod
    def _read(self, request: ChatRequest, body: bytes) -> tuple[list[Vector], Usage | None]:
        """The vectors in the order of the inputs, and the usage, None if the vendor counts no tokens.

        Raises msgspec.DecodeError or ProviderError.
        """
        ...


def in_format(vector: Vector, encoding_format: str | None) -> Vector:
    """Returns the same bytes if the vector has the requested format."""
    is_text = vector.lstrip()[:1] == b'"'
    if is_text == (encoding_format == "base64"):
        return vector
    try:
        if is_text:
            packed = base64.b64decode(_decode_text(vector), validate=True)
            return _encode(struct.unpack(f"<{len(packed) // _FLOAT_BYTES}f", packed))
        floats = _decode_floats(vector)
        return b'"%b"' % base64.b64encode(struct.pack(f"<{len(floats)}f", *floats))
    except (ValueError, struct.error, OverflowError) as error:
        raise msgspec.DecodeError("an embedding holds something other than 32-bit floats") from error


def answered(vectors: Sequence[Vector], model: str, usage: Usage) -> ParsedResponse:
    head = _encode({"object": "list", "model": model, "usage": _usage_object(usage)})
    rows = b",".join([b'{"object":"embedding","index":%d,"embedding":%b}' % row for row in enumerate(vectors)])
    body = head[:-1] + b',"data":[' + rows + b"]}"
    return ParsedResponse(body, model, "", usage, recorded(len(vectors), model, usage))


def recorded(count: int, model: str, usage: Usage) -> bytes:
    """The record of an answer without its vectors, which nobody reads."""
    return _encode({"object": "list", "model": model, "embeddings": count, "usage": _usage_object(usage)})


def estimated(request: EmbeddingsRequest) -> Usage:
    tokens = sum(
        -(-len(one.encode("utf-8", "replace")) // _BYTES_PER_TOKEN) if isinstance(one, str) else len(one)
        for one in request.inputs
    )
    return Usage(prompt_tokens=tokens, estimated=True)


def prompt_usage(counts: Any) -> Usage | None:
    """None without a count. Some vendors count only the total, and an embedding has no output."""
    if not isinstance(counts, dict):
        return None
    found = read_usage(counts)
    if found is None or not found.prompt_tokens:
        return None
    return Usage(found.prompt_tokens, cache_read_tokens=found.cache_read_tokens, stated_cost=found.stated_cost)


def vectors_of(body: bytes) -> list[Vector]:
    return [bytes(row.embedding) for row in _decode_answer(body).data]


class _Row(msgspec.Struct):
    embedding: msgspec.Raw


class _Answer(msgspec.Struct):
    data: list[_Row]


_decode_answer = msgspec.json.Decoder(_Answer).decode


def _usage_object(usage: Usage) -> dict[str, Any]:
    counts: dict[str, Any] = {"prompt_tokens": usage.prompt_tokens, "total_tokens": usage.prompt_tokens}
    return {**counts, "estimated": True} if usage.estimated else counts


def _sum(first: Usage, second: Usage) -> Usage:
    costs = [usage.stated_cost for usage in (first, second) if usage.stated_cost is not None]
    return Usage(
        first.prompt_tokens + second.prompt_tokens,
        cache_read_tokens=first.cache_read_tokens + second.cache_read_tokens,
        stated_cost=sum(costs[1:], costs[0]) if costs else None,
        estimated=first.estimated or second.estimated,
    )
