"""The product's sandbox provider, which keeps the requests that it received."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from aiohttp.typedefs import Handler

from integrations.sandbox import wire
from integrations.sandbox.answers import choices_for
from integrations.sandbox.behaviours import behaviour_of
from integrations.sandbox.server import Sandbox, embeddings_for
from integrations.sandbox.tokens import PrefixCache
from tests.waiting import TIMEOUT_SECONDS


@dataclass(frozen=True)
class Exchange:
    request: Mapping[str, Any]

    @property
    def message(self) -> Mapping[str, Any]:
        (choice,) = self._completion()["choices"]
        message: Mapping[str, Any] = choice["message"]
        return message

    @property
    def usage(self) -> tuple[int, int]:
        usage = self._completion()["usage"]
        return usage["prompt_tokens"], usage["completion_tokens"]

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        return [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in self.message.get("tool_calls", [])
        ]

    @property
    def vectors(self) -> list[list[float]]:
        rows = embeddings_for({**self.request, "encoding_format": "float"})["data"]
        return [row["embedding"] for row in rows]

    def _completion(self) -> dict[str, Any]:
        choices = choices_for(self.request, behaviour_of(str(self.request["model"])))
        prompt = PrefixCache().prompt_tokens(self.request["messages"], self.request.get("tools"))
        return wire.completion(self.request, choices, wire.usage(prompt, choices))


class RecordingSandbox:
    def __enter__(self) -> Self:
        self._exchanges: list[tuple[str, Exchange]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._runner, self.base_url = self._await(self._serve())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._await(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_SECONDS)
        self._loop.close()

    def exchanges_about(self, prompt: str) -> list[Exchange]:
        return [exchange for body, exchange in self._exchanges if prompt in body]

    def _await(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(TIMEOUT_SECONDS)

    async def _serve(self) -> tuple[web.AppRunner, str]:
        application = Sandbox().application()
        application.middlewares.append(self._record)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"

    @web.middleware
    async def _record(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method == "POST":
            body = await request.text()
            self._exchanges.append((body, Exchange(json.loads(body))))
        return await handler(request)
