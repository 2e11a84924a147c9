from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.service import Gateway, GatewayService


@pytest.fixture(scope="session")
def service(clickhouse_engine: None) -> Iterator[GatewayService]:
    url = os.environ.get("CLICKHOUSE_URL") or (Path(os.environ["VAR_DIR"]) / "run" / "clickhouse.url").read_text()
    with GatewayService(settings={"CLICKHOUSE_URL": url.strip(), "GATEWAY_BODY_SECONDS": "8"}) as running:
        yield running
        log = running.log.read_text(errors="replace")
        assert "Traceback" not in log, log[-4000:]
        assert "request.failed" not in log, log[log.index("request.failed") :][:4000]


@pytest.fixture
def gateway(service: GatewayService) -> Gateway:
    return service.new_project()
