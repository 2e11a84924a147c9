"""One gateway service for all tests of this folder; each test gets a project of its own or shares the plain one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.fakes.scripted import Script, ScriptedServer, Step, answer
from tests.gateway.service import PROVIDER_SECRET, Gateway, GatewayService

Scripted = Callable[..., tuple[Gateway, Script]]


@pytest.fixture(scope="session")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture(scope="session")
def service() -> Iterator[GatewayService]:
    with GatewayService() as running:
        yield running
        log = running.log.read_text(errors="replace")
        # Whatever the tests of a run did: no key, and nothing unexpected, reached the log.
        assert PROVIDER_SECRET not in log
        assert "Traceback" not in log, log[-4000:]


@pytest.fixture(scope="session")
def plain_project(service: GatewayService, upstream: ScriptedServer) -> Gateway:
    """Provider openai answers every request with the same text."""
    upstream.play("plain", answer())
    made = service.new_project(base_urls={"openai": upstream.base_url("plain")})
    made.upstream = upstream
    return made


@pytest.fixture
def gateway(plain_project: Gateway) -> Gateway:
    """The shared project; `upstream.received` starts empty for each test."""
    plain_project.upstream.received.clear()
    return plain_project


@pytest.fixture
def scripted(service: GatewayService, upstream: ScriptedServer) -> Scripted:
    """A new project whose provider openai follows the steps, and what that provider received."""

    def make(*steps: Step) -> tuple[Gateway, Script]:
        name = f"script-{len(upstream.scripts)}"
        script = upstream.play(name, *steps)
        made = service.new_project(base_urls={"openai": upstream.base_url(name)})
        made.upstream = upstream
        return made, script

    return make


Routed = Callable[..., tuple[Gateway, dict[str, Script]]]


@pytest.fixture
def routed(service: GatewayService, upstream: ScriptedServer) -> Routed:
    """A new project with routing settings whose providers, given by name, follow their steps; with their scripts."""

    def make(settings: dict[str, Any] | None = None, **steps: list[Step]) -> tuple[Gateway, dict[str, Script]]:
        scripts, urls = {}, {}
        for provider, given in steps.items():
            name = f"script-{len(upstream.scripts)}"
            scripts[provider] = upstream.play(name, *given)
            urls[provider] = upstream.base_url(name)
        made = service.new_project(base_urls=urls, routing=settings)
        made.upstream = upstream
        return made, scripts

    return make
