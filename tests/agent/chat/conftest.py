from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.agent.chat.playing import MODEL
from tests.fakes.scripted import Script, Step
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.conftest import scripted as scripted
from tests.gateway.conftest import upstream as upstream
from tests.gateway.service import PROVIDER_SECRET, Gateway, GatewayService

# The lease is long enough to be renewed in time on a busy machine.
LEASE_SECONDS = 8.0
BODY_SECONDS = 8.0

Played = Callable[..., tuple[Gateway, Script]]


@pytest.fixture(scope="session")
def service() -> Iterator[GatewayService]:
    settings = {
        **LONG_TIMEOUTS,
        "HEARTBEAT_SECONDS": "0.3",
        "GATEWAY_BODY_SECONDS": str(BODY_SECONDS),
        "AGENT_LEASE_SECONDS": str(LEASE_SECONDS),
    }
    with GatewayService(settings=settings) as running:
        yield running
        log = running.log.read_text(errors="replace")
        assert PROVIDER_SECRET not in log
        assert "Traceback" not in log, log[-4000:]
        assert "request.failed" not in log, log[log.index("request.failed") :][:4000]


@pytest.fixture
def played(scripted: Callable[..., tuple[Gateway, Script]], service: GatewayService) -> Played:
    def make(*steps: Step, **settings: Any) -> tuple[Gateway, Script]:
        gateway, script = scripted(*steps)
        service.set_routing(gateway.project_id, **{"agent_model": MODEL, "retry_enabled": False, **settings})
        return gateway, script

    return make
