"""The sandbox's HTTP server: `/v1/chat/completions`, `/v1/embeddings`, `/v1/rerank`, `/v1/models`.

aiohttp serves it: it is already in the project's lock and cancels a handler whose client has left.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
import re
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from aiohttp import web

from integrations.sandbox import wire
from integrations.sandbox.answers import Choice, RejectedError, choices_for
from integrations.sandbox.behaviours import BEHAVIOURS, Behaviour, behaviour_of
from integrations.sandbox.tokens import PrefixCache, count

_BODY_BYTES = 64 * 1024 * 1024
_REMEMBERED_ATTEMPTS = 10_000


_DIMENSIONS = 8
_MAX_DIMENSIONS = 4096
_RANKED_DIMENSIONS = 512
_WORD = re.compile(r"\w+")


def embeddings_for(request: Mapping[str, Any]) -> dict[str, Any]:
    inputs = _inputs(request.get("input"))
    dimensions = request.get("dimensions") or _DIMENSIONS
    if not isinstance(dimensions, int) or not 0 < dimensions <= _MAX_DIMENSIONS:
        raise RejectedError(f"dimensions has to be between 1 and {_MAX_DIMENSIONS}.", "dimensions")
    is_base64 = request.get("encoding_format") == "base64"
    vectors = [_vector(one, dimensions) for one in inputs]
    rows = [
        {"object": "embedding", "index": index, "embedding": _base64(vector) if is_base64 else vector}
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(count(one) if isinstance(one, str) else len(one) for one in inputs)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": rows, "model": request.get("model"), "usage": usage}


def ranking_for(request: Mapping[str, Any]) -> dict[str, Any]:
    query, documents = request.get("query"), request.get("documents")
    if not isinstance(query, str) or not isinstance(documents, list) or not all(documents):
        raise RejectedError("query has to be a text, and documents a list of texts.", "documents")
    texts = [one if isinstance(one, str) else str(one.get("text")) for one in documents]
    question = _vector(query, _RANKED_DIMENSIONS)
    scores = [sum(a * b for a, b in zip(question, _vector(text, _RANKED_DIMENSIONS), strict=True)) for text in texts]
    ranked = sorted(range(len(texts)), key=lambda index: -scores[index])[: request.get("top_n")]
    results = [{"index": index, "relevance_score": round(scores[index], 4)} for index in ranked]
    tokens = count(query) + sum(map(count, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"id": "rerank-sandbox", "model": request.get("model"), "results": results, "usage": usage}


def _inputs(given: Any) -> list[str | list[int]]:
    inputs = given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]
    if not all(one and isinstance(one, (str, list)) for one in inputs):
        raise RejectedError("input has to be a text, texts, tokens, or arrays of tokens.", "input")
    return inputs


def _vector(given: str | list[int], dimensions: int) -> list[float]:
    words = _WORD.findall(given.lower()) or [given] if isinstance(given, str) else [str(token) for token in given]
    sums = [0.0] * dimensions
    for word in words:
        digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
        sums[int.from_bytes(digest[:4], "big") % dimensions] += 1.0 + digest[4] / 256
    length = math.sqrt(sum(value * value for value in sums))
    return [round(value / length, 6) for value in sums]


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


class Sandbox:
    def __init__(self) -> None:
        self.prefixes = PrefixCache()
        self._attempts: Counter[bytes] = Counter()

    def application(self) -> web.Application:
        application = web.Application(client_max_size=_BODY_BYTES)
        application.router.add_post("/v1/chat/completions", self.chat_completions)
        application.router.add_post("/v1/embeddings", partial(self.answer, embeddings_for))
        application.router.add_post("/v1/rerank", partial(self.answer, ranking_for))
        application.router.add_get("/v1/models", self.models)
        return application

    async def models(self, request: web.Request) -> web.Response:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "sandbox"} for name in BEHAVIOURS]
        return web.json_response({"object": "list", "data": listed})

    async def chat_completions(self, http: web.Request) -> web.StreamResponse:
        body = await http.read()
        try:
            request = _decoded(body)
            behaviour = self._behaviour(request, body)
            if behaviour.status != 200:
                return _refusal(behaviour)
            choices = choices_for(request, behaviour)
        except RejectedError as rejected:
            details = wire.error(rejected.message, "invalid_request_error", "invalid_value", rejected.param)
            return web.json_response(details, status=400)
        prompt = self.prefixes.prompt_tokens(request["messages"], request.get("tools"))
        used = wire.usage(prompt, choices)
        if behaviour.hang:
            await asyncio.Event().wait()
        if request.get("stream"):
            return await _streamed(http, request, behaviour, choices, used)
        await asyncio.sleep(behaviour.first_delay)
        # Some aggregators answer a failed request like this, with an error under status 200.
        if behaviour.error_event_after == 0:
            return web.json_response(_late_failure())
        return web.json_response(wire.completion(request, choices, used))

    async def answer(self, made: Callable[[Mapping[str, Any]], dict[str, Any]], http: web.Request) -> web.Response:
        body = await http.read()
        try:
            request = _decoded(body)
            behaviour = self._behaviour(request, body)
            if behaviour.status != 200:
                return _refusal(behaviour)
            answer = made(request)
        except RejectedError as rejected:
            details = wire.error(rejected.message, "invalid_request_error", "invalid_value", rejected.param)
            return web.json_response(details, status=400)
        if behaviour.hang:
            await asyncio.Event().wait()
        await asyncio.sleep(behaviour.first_delay)
        return web.json_response(answer)

    def _behaviour(self, request: Mapping[str, Any], body: bytes) -> Behaviour:
        behaviour = behaviour_of(str(request.get("model", "echo")))
        if not behaviour.flaky and not behaviour.half:
            return behaviour
        key = hashlib.sha256(body).digest()
        if behaviour.half:
            return BEHAVIOURS[behaviour.half] if key[0] % 2 else behaviour
        if len(self._attempts) >= _REMEMBERED_ATTEMPTS:
            self._attempts.clear()
        self._attempts[key] += 1
        return BEHAVIOURS["error-503"] if self._attempts[key] % 2 else behaviour


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except ValueError:
        raise RejectedError("The body is not valid JSON.", "") from None
    if not isinstance(request, dict):
        raise RejectedError("The body has to be a JSON object.", "")
    return request


def _refusal(behaviour: Behaviour) -> web.Response:
    headers = {"retry-after": behaviour.retry_after} if behaviour.retry_after else {}
    return web.json_response(wire.failure(behaviour), status=behaviour.status, headers=headers)


def _late_failure() -> dict[str, Any]:
    return wire.error("The server had an error while it answered.", "server_error")


async def _streamed(
    http: web.Request, request: Mapping[str, Any], behaviour: Behaviour, choices: list[Choice], used: Mapping[str, Any]
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
    await response.prepare(http)
    await asyncio.sleep(behaviour.first_delay)
    chunks = list(wire.chunks(request, choices, used))
    outputs = sum(has_output for _, has_output in chunks)
    sent = 0
    for chunk, has_output in chunks:
        if (has_output or sent == outputs) and sent == _misbehaves_at(behaviour, outputs):
            await _misbehave(http, response, behaviour)
            return response
        if has_output:
            sent += 1
            await asyncio.sleep(behaviour.chunk_delay)
        await response.write(_event(chunk))
    await response.write(b"data: [DONE]\n\n")
    return response


def _misbehaves_at(behaviour: Behaviour, outputs: int) -> int | None:
    counts = (behaviour.error_event_after, behaviour.hang_after, behaviour.cut_after)
    return next((min(after, outputs) for after in counts if after is not None), None)


async def _misbehave(http: web.Request, response: web.StreamResponse, behaviour: Behaviour) -> None:
    if behaviour.error_event_after is not None:
        await response.write(_event(_late_failure()))
    elif behaviour.hang_after is not None:
        await asyncio.Event().wait()
    elif http.transport is not None:
        http.transport.abort()


def _event(content: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
