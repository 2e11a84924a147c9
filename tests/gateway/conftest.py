"""Fixtures for a gateway service that all tests of this folder share; each test gets a project of its own or the plain
one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from tests.fakes.scripted import Script, ScriptedServer, Step, answer
from tests.gateway.sandbox import SandboxProcess
from tests.gateway.service import PROVIDER_SECRET, Gateway, GatewayService
from tests.gateway.stage import Stage, staged
from tests.small_disk import SmallDisk, small_disk

Scripted = Callable[..., tuple[Gateway, Script]]
Routed = Callable[..., tuple[Gateway, dict[str, Script]]]

# These limits are longer than anything takes on a busy machine: no answer is too late, and no heartbeat commits a
# status too early. Tests of time-outs and heartbeats use the service `brisk`.
LONG_TIMEOUTS = {
    "HEARTBEAT_SECONDS": "60",
    "UPSTREAM_CONNECT_SECONDS": "60",
    "UPSTREAM_FIRST_BYTE_SECONDS": "60",
    "UPSTREAM_IDLE_SECONDS": "60",
    "UPSTREAM_TTFT_SECONDS": "60",
    "GATEWAY_BODY_SECONDS": "60",
    "HTTP_HEAD_SECONDS": "60",
    "MANAGEMENT_BODY_SECONDS": "60",
}


@pytest.fixture(scope="session")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture(scope="session")
def service() -> Iterator[GatewayService]:
    with GatewayService(settings=LONG_TIMEOUTS) as running:
        yield running
        assert_log_is_clean(running)


@pytest.fixture(scope="session")
def brisk() -> Iterator[GatewayService]:
    """A service of one worker that soon gives up a provider, and soon fills a silent stream with comments."""
    settings = {**LONG_TIMEOUTS, "HEARTBEAT_SECONDS": "0.3", "GATEWAY_BODY_SECONDS": "3"}
    settings |= {"HTTP_HEAD_SECONDS": "3", "MANAGEMENT_BODY_SECONDS": "3"}
    settings |= {"UPSTREAM_FIRST_BYTE_SECONDS": "3", "UPSTREAM_IDLE_SECONDS": "3", "UPSTREAM_TTFT_SECONDS": "5"}
    with GatewayService(workers=1, settings=settings) as running:
        yield running
        assert_log_is_clean(running)


@pytest.fixture(scope="session")
def pair() -> Iterator[GatewayService]:
    """A service of two workers with few projects: after a change of prices the workers read all projects again."""
    with GatewayService(settings=LONG_TIMEOUTS) as running:
        yield running
        assert_log_is_clean(running)


def assert_log_is_clean(service: GatewayService) -> None:
    """Asserts that a run's log holds no key and no unexpected line, whatever its tests did."""
    log = service.log.read_text(errors="replace")
    assert PROVIDER_SECRET not in log
    assert "Traceback" not in log, log[-4000:]


@pytest.fixture(scope="session")
def plain_project(service: GatewayService, upstream: ScriptedServer) -> Gateway:
    """A project whose provider openai answers every request with the same text."""
    upstream.play("plain", answer())
    made = service.new_project(base_urls={"openai": upstream.base_url("plain")})
    made.upstream = upstream
    return made


@pytest.fixture
def gateway(plain_project: Gateway) -> Gateway:
    """The shared plain project, whose `upstream.received` is emptied before each test."""
    plain_project.upstream.received.clear()
    return plain_project


@pytest.fixture
def scripted(service: GatewayService, upstream: ScriptedServer) -> Scripted:
    """Makes a project whose provider openai follows the given steps; returns it with the requests that the provider
    received."""
    return partial(_scripted, service, upstream)


@pytest.fixture
def brisk_scripted(brisk: GatewayService, upstream: ScriptedServer) -> Scripted:
    """Makes a project as `scripted` does, on the service `brisk`."""
    return partial(_scripted, brisk, upstream)


@pytest.fixture
def routed(service: GatewayService, upstream: ScriptedServer) -> Routed:
    """Makes a project with routing settings whose providers, given by name, follow their steps; returns it with their
    scripts."""
    return partial(_routed, service, upstream)


@pytest.fixture
def brisk_routed(brisk: GatewayService, upstream: ScriptedServer) -> Routed:
    """Makes a project as `routed` does, on the service `brisk`."""
    return partial(_routed, brisk, upstream)


def _scripted(service: GatewayService, upstream: ScriptedServer, *steps: Step) -> tuple[Gateway, Script]:
    gateway, scripts = _routed(service, upstream, openai=list(steps))
    return gateway, scripts["openai"]


def _routed(
    service: GatewayService,
    upstream: ScriptedServer,
    settings: dict[str, Any] | None = None,
    *,
    own_account: bool = False,
    **steps: list[Step],
) -> tuple[Gateway, dict[str, Script]]:
    scripts, rows = {}, []
    for provider, given in steps.items():
        name = f"script-{len(upstream.scripts)}"
        scripts[provider] = upstream.play(name, *given)
        row = {"provider": provider, "base_url": upstream.base_url(name), "api_key": PROVIDER_SECRET}
        rows.append({**row, "own_account": own_account})
    made = service.new_project(integrations=rows, routing=settings)
    made.upstream = upstream
    return made, scripts


@pytest.fixture(scope="module")
def sandboxed(service: GatewayService) -> Iterator[Gateway]:
    """A project that asks a sandbox of its own."""
    with SandboxProcess() as sandbox:
        yield service.new_project(base_urls={"openai_compatible": sandbox.base_url})


@pytest.fixture(scope="module")
def stage(service: GatewayService) -> Iterator[Stage]:
    """A project of its own for each module, in which every provider is enabled and played by its fake."""
    with staged(service) as made:
        yield made


@pytest.fixture
def disk(tmp_path: Path, settings: Settings) -> Iterator[SmallDisk]:
    """A small disk with the spool, and nothing else on it."""
    with small_disk(tmp_path / "disk", 8 << 20) as found:
        settings.SPOOL_DIR = found.path / "spool"
        settings.SPOOL_RESERVE_BYTES = 256 * 1024
        yield found
