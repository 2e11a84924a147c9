from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.clients import ROOT
from tests.clients.conftest import INSTALL_SECONDS
from tests.clients.provider import RecordingSandbox
from tests.gateway.conftest import LONG_TIMEOUTS, assert_log_is_clean
from tests.gateway.service import Gateway, GatewayService


@pytest.fixture(scope="session")
def installed() -> None:
    # The variables of a make around this one would change what it does.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    with (ROOT / "Makefile").open() as makefile:
        # Two runs of the suite install one after the other.
        fcntl.flock(makefile, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "exporters", f"PYTHON={sys.executable}"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_SECONDS,
        )
    assert done.returncode == 0, f"make exporters failed:\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="session")
def service(clickhouse_engine: None) -> Iterator[GatewayService]:
    url = os.environ.get("CLICKHOUSE_URL") or (Path(os.environ["VAR_DIR"]) / "run" / "clickhouse.url").read_text()
    with GatewayService(workers=1, settings={**LONG_TIMEOUTS, "CLICKHOUSE_URL": url.strip()}) as running:
        yield running
        assert_log_is_clean(running)


@pytest.fixture(scope="session")
def gateway(service: GatewayService, provider: RecordingSandbox) -> Gateway:
    return service.new_project(base_urls={"sandbox": provider.base_url})
