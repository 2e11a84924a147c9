"""A campaign sends many cases of each entrance to one gateway; all of them follow from the seed of the run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import httpx2

from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer
from tests.fakes.scripted import ScriptedServer, answer
from tests.fuzzing.entrances import Completions, Entrance, Management, Mcp, Telemetry
from tests.fuzzing.exchange import Finding, Sent
from tests.fuzzing.providers import ProviderAnswers
from tests.gateway.conftest import LONG_TIMEOUTS, assert_log_is_clean
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import integration_of
from tests.waiting import TIMEOUT_SECONDS

ENTRANCES = ("gateway", "management", "otlp", "mcp", "provider")
# Retries and fallbacks are off, so that each case is one exchange with a provider.
ONE_CALL = {"retry_enabled": False, "fallback_enabled": False}


@dataclass(frozen=True)
class FailedCase:
    entrance: str
    number: int
    replay: str
    sent: Sent
    problem: str


@dataclass(frozen=True)
class Outcome:
    entrance: str
    cases: int
    statuses: dict[int, int]
    found: Sequence[FailedCase]


@contextmanager
def fuzzed_gateway() -> Iterator[GatewayService]:
    """One worker on the suite's ClickHouse. Its log is checked by the same rules as after every other test."""
    url = os.environ.get("CLICKHOUSE_URL") or (Path(os.environ["VAR_DIR"]) / "run" / "clickhouse.url").read_text()
    settings = {**LONG_TIMEOUTS, "CLICKHOUSE_URL": url.strip(), "GATEWAY_BODY_SECONDS": "5"}
    with GatewayService(workers=1, settings=settings) as service:
        yield service
        assert_log_is_clean(service)


@contextmanager
def entrance_of(name: str, service: GatewayService) -> Iterator[Entrance]:
    with ExitStack() as stack:
        if name == "provider":
            upstream = stack.enter_context(DialectServer())
            rows = [integration_of(fake, upstream.base_url(provider)) for provider, fake in FAKES.items()]
            # What a provider wrote oddly is passed on as it came, and need not fit the OpenAPI document.
            client = stack.enter_context(httpx2.Client(timeout=2 * TIMEOUT_SECONDS))
            yield ProviderAnswers(service.new_project(integrations=rows, routing=ONE_CALL), client, upstream)
            return
        scripted = stack.enter_context(ScriptedServer())
        scripted.play("plain", answer())
        yield _made(name, service.new_project(base_urls={"openai": scripted.base_url("plain")}, routing=ONE_CALL))


def _made(name: str, gateway: Gateway) -> Entrance:
    kinds: dict[str, Callable[[Gateway], Entrance]] = {
        "gateway": Completions,
        "management": Management,
        "otlp": Telemetry,
        "mcp": Mcp,
    }
    return kinds[name](gateway)


def run(entrance: Entrance, *, seed: int, cases: int, seconds: float = float("inf"), first: int = 0) -> Outcome:
    """Sends cases `first` to `first + cases - 1`, or as many as begin within `seconds`."""
    deadline = time.monotonic() + seconds
    statuses: dict[int, int] = {}
    found: list[FailedCase] = []
    number = first
    while number < first + cases and time.monotonic() < deadline:
        sent = entrance.case(Random(f"{entrance.name} {seed} {number}"))
        try:
            status = entrance.send(sent).status
            statuses[status] = statuses.get(status, 0) + 1
        except (Finding, AssertionError) as problem:
            replay = f"python -m tests.fuzzing --entrance {entrance.name} --seed {seed} --case {number}"
            found.append(FailedCase(entrance.name, number, replay, sent, str(problem)[:2000]))
        number += 1
    return Outcome(entrance.name, number - first, dict(sorted(statuses.items())), found)
