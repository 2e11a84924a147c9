"""Plays a case: a project whose providers follow the case's answers, and the client's request to it over HTTP."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import brotli
import httpx2

from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer, answer_with, read_request
from tests.fakes.dialects.story import Call, ReadRequest, Story
from tests.fakes.scripted import Script, Step, raw
from tests.fakes.upstream import Connection, Received
from tests.gateway.cases.case import Case
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import integration_of

# US dollars for a million tokens, of each model that a case asks for.
_PRICE = {"input": "2", "output": "8"}
_ENCODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "br": brotli.compress,
    "deflate": zlib.compress,
    "gzip": gzip.compress,
}
_numbers = count()


@dataclass(frozen=True)
class Played:
    """A request of a case with its answer, and what its providers received meanwhile."""

    case: Case
    stage: CaseStage
    gateway: Gateway
    script: Script
    response: httpx2.Response

    @property
    def last_request(self) -> Received:
        return self.script.received[-1]

    def read_last_request(self) -> ReadRequest:
        """Returns the last request as its provider reads it. Raises AssertionError when the vendor would refuse it."""
        provider = self.last_request.path.split("/")[2].partition("-")[0]
        return read_request(FAKES[provider], self.last_request)


@dataclass(frozen=True)
class CaseStage:
    service: GatewayService
    server: DialectServer

    def play(self, case: Case) -> Played:
        return self._ask(case, case.providers, case.request["body"], _steps_of(case.upstream))

    def play_alone(self, case: Case) -> Played:
        """Asks where the first provider is the only one, and gives its first answer to whatever comes."""
        body = {name: value for name, value in case.request["body"].items() if name != "models"}
        return self._ask(case, case.providers[:1], body, [_step_of(case.upstream[0])])

    def play_call(self, case: Case, name: str, arguments: Mapping[str, Any], *, stream: bool) -> Played:
        """Has the provider answer with a call of the function of this name, as its vendor writes one."""
        provider = case.providers[-1]
        story = Story(calls=(Call("call_7f", name, arguments),), finish="tool_calls")
        body = {**case.request["body"], "stream": stream}
        return self._ask(case, (provider,), body, [answer_with(FAKES[provider], story)])

    def _ask(self, case: Case, providers: Iterable[str], body: Mapping[str, Any], steps: list[Step]) -> Played:
        # All providers of a case take their answers from one list. The address says which of them was asked.
        script, number = Script(steps), next(_numbers)
        names = {provider: f"{provider}-{number}" for provider in providers}
        self.server.scripts |= dict.fromkeys(names.values(), script)
        gateway = self.service.new_project(
            integrations=[integration_of(FAKES[one], self.server.base_url(name)) for one, name in names.items()],
            prices=_prices(case, body),
        )
        response = self.service.client.request(
            case.request["method"],
            self.service.base_url() + case.request["path"],
            content=json.dumps(body, ensure_ascii=False).encode(),
            headers={**gateway.headers, **case.request.get("headers", {})},
        )
        return Played(case, self, gateway, script, response)


def _prices(case: Case, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the project's prices of the models that the request names, and of those that the case has prices of."""
    own = {
        name: {word.removesuffix("_cost_per_1m"): price for word, price in prices.items()}
        for name, prices in case.prices.items()
    }
    priced = {f"{one}/{model}": _PRICE for one, model in _models_of(body)} | own
    return [
        {**price, "provider": name.partition("/")[0], "model": name.partition("/")[2]}
        for name, price in priced.items()
        if name not in case.unpriced
    ]


def _models_of(body: Mapping[str, Any]) -> list[list[str]]:
    """Returns the provider and the name of each model that the request names."""
    return [name.split("/", 1) for name in (body.get("model", ""), *body.get("models", ())) if "/" in name]


def _steps_of(upstream: Iterable[Mapping[str, Any]]) -> list[Step]:
    return [_step_of(answer) for answer in upstream for _ in range(answer.get("repeat", 1))]


def _step_of(answer: Mapping[str, Any]) -> Step:
    assert answer.keys() <= _ANSWER_KEYS, f"unknown: {answer.keys() - _ANSWER_KEYS}"
    content_type, body = _body_of(answer)
    headers = {"content-type": content_type, **answer.get("headers", {})}
    if encoding := answer.get("encode_body_as"):
        body = _ENCODERS[encoding](body)
    return raw(answer["status"], body, headers) if "json" in answer else _streaming(answer["status"], headers, body)


_ANSWER_KEYS = {"status", "json", "sse", "raw_sse", "repeat", "headers", "encode_body_as"}


def _body_of(answer: Mapping[str, Any]) -> tuple[str, bytes]:
    if "json" in answer:
        return "application/json", json.dumps(answer["json"], ensure_ascii=False).encode()
    if "raw_sse" in answer:
        return "text/event-stream", answer["raw_sse"].encode()
    return "text/event-stream", b"".join(map(_event, answer["sse"]))


def _event(data: Any) -> bytes:
    """Returns the frame of one event, under its type where it has one, as Anthropic and the Responses API name them."""
    if isinstance(data, str):
        return f"data: {data}\n\n".encode()
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _streaming(status: int, headers: dict[str, str], body: bytes) -> Step:
    async def step(request: Received, connection: Connection) -> None:
        await connection.start_stream(status, headers)
        await connection.send_chunk(body)
        await connection.end_stream()

    return step
