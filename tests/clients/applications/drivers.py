"""Drives the clients of `clients/` alike: Python's here, TypeScript's in a process of Node.js."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from prompt_gateway_client import PromptGateway, PromptGatewayError

from tests.clients.clients import ENVIRONMENTS
from tests.waiting import TIMEOUT_SECONDS

_DRIVER = Path(__file__).parent / "driver.mjs"
MODULE = ENVIRONMENTS / "typescript" / "dist" / "index.js"


@dataclass(frozen=True)
class Refused:
    kind: str
    status: int
    code: str


class Driver(Protocol):
    """A client with a clock of its own that stands still. Names of options are those of Python."""

    def advance(self, seconds: float) -> None: ...

    def get(self, name: str = "support", **options: Any) -> Any:
        """Returns the prompt as JSON, or Refused."""

    def get_at_once(self, count: int, begun: Callable[[], Any]) -> list[Any]:
        """`begun` is called when all gets have begun."""

    def call(self, name: str, *given: Any, **options: Any) -> Any:
        """Returns the answer of another method, or Refused."""

    def close(self) -> None: ...


Address = dict[str, Any]


def later(driver: Driver, **options: Any) -> Any:
    """Gets five seconds later: the client asks again, however late the last failure came in."""
    driver.advance(5)
    return driver.get(**options)


class PythonDriver:
    def __init__(self, address: Address) -> None:
        self._now = 1_000_000.0
        self._client = PromptGateway(
            address["base_url"],
            address["api_key"],
            address["project_id"],
            timeout=address["timeout"],
            clock=lambda: self._now,
        )

    def advance(self, seconds: float) -> None:
        self._now += seconds

    def get(self, name: str = "support", **options: Any) -> Any:
        found = self.call("get_prompt", name, **options)
        return found if isinstance(found, Refused) else asdict(found)

    def get_at_once(self, count: int, begun: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        all_there = threading.Barrier(count, action=begun)

        def get() -> None:
            all_there.wait(TIMEOUT_SECONDS)
            found.append(self.get())

        threads = [threading.Thread(target=get) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def call(self, name: str, *given: Any, **options: Any) -> Any:
        try:
            return getattr(self._client, name)(*given, **options)
        except PromptGatewayError as error:
            return Refused(type(error).__name__, error.status, error.code)

    def close(self) -> None:
        """Leaves nothing behind."""


class TypeScriptDriver:
    def __init__(self, address: Address) -> None:
        self._child = subprocess.Popen(
            ["node", str(_DRIVER), MODULE.as_uri()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ask("new", **address)

    def advance(self, seconds: float) -> None:
        self._ask("advance", seconds=seconds)

    def get(self, name: str = "support", **options: Any) -> Any:
        return _result(self._ask("get", name=name, options=_camel(options)))

    def get_at_once(self, count: int, begun: Callable[[], Any]) -> list[Any]:
        # Node.js begins all of them before it reads the first answer.
        begun()
        return [_result(found) for found in self._ask("get_at_once", count=count)["found"]]

    def call(self, name: str, *given: Any, **options: Any) -> Any:
        if name == "score":
            given, options = (dict(zip(("request_id", "score_name", "score_value"), given, strict=True)) | options,), {}
        if name == "feedback_token" and options:
            given, options = (*given, 3600, options["request_id"]), {}
        arguments = [*given, *([_camel(options)] if options else [])]
        return _result(self._ask("call", name=_camel_name(name), arguments=arguments))

    def close(self) -> None:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        self._child.stdout.close()
        assert self._child.wait(TIMEOUT_SECONDS) == 0

    def _ask(self, do: str, **command: Any) -> dict[str, Any]:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(json.dumps({"do": do, **command}) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        assert line, f"{do} ended the driver, see its words above"
        answer: dict[str, Any] = json.loads(line)
        return answer


def _result(answer: dict[str, Any]) -> Any:
    return Refused(**answer["refused"]) if "refused" in answer else answer.get("value")


def _camel(options: dict[str, Any]) -> dict[str, Any]:
    return {_camel_name(name): value for name, value in options.items()}


def _camel_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


DRIVERS: Mapping[str, Callable[[Address], Driver]] = {"python": PythonDriver, "typescript": TypeScriptDriver}
