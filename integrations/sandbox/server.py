"""The sandbox's HTTP server: `/v1/chat/completions`, `/v1/embeddings`, `/v1/rerank`, `/v1/models`.

aiohttp serves it: a server that is already in the project's lock and cancels a handler whose client has left.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from aiohttp import web

from integrations.sandbox import wire
from integrations.sandbox.answers import Choice, RejectedError, choices_for
from integrations.sandbox.behaviours import BEHAVIOURS, Behaviour, behaviour_of
from integrations.sandbox.embeddings import embeddings_for, ranking_for
from integrations.sandbox.tokens import PrefixCache

_BODY_BYTES = 64 * 1024 * 1024
_REMEMBERED_ATTEMPTS = 10_000


class Sandbox:
    """The memory of one server: beginnings of prompts for the prefix cache, and the number of attempts at each flaky
    request."""

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
        """Answers an operation whose answer `made` makes of the request."""
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
        behaviour = behaviour_of(str(request.get("model", "")))
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
    """Returns the number of pieces after which the answer misbehaves: all pieces of a short one, whose end is then
    missing. None when it never misbehaves."""
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
