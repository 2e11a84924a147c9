from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.clients.applications.drivers import DRIVERS, Driver
from tests.clients.applications.prompt_server import PromptServer, prompt_server
from tests.clients.clients import ROOT
from tests.waiting import TIMEOUT_SECONDS

_BUILD_SECONDS = 300


@pytest.fixture(scope="session")
def compiled() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    with (ROOT / "Makefile").open() as makefile:
        # Two runs of the suite compile one after the other.
        fcntl.flock(makefile, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "typescript"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_SECONDS,
        )
    assert done.returncode == 0, f"make typescript failed:\n{done.stdout}{done.stderr}"


@pytest.fixture
def server() -> Iterator[PromptServer]:
    with prompt_server() as running:
        yield running


@pytest.fixture(params=list(DRIVERS))
def driver(request: pytest.FixtureRequest, compiled: None, server: PromptServer) -> Iterator[Driver]:
    address = {"base_url": server.base_url, "api_key": "svc_test", "project_id": "p", "timeout": TIMEOUT_SECONDS}
    with closing(DRIVERS[request.param](address)) as made:
        yield made


@pytest.fixture(params=list(DRIVERS))
def hasty(request: pytest.FixtureRequest, compiled: None, server: PromptServer) -> Iterator[Driver]:
    address = {"base_url": server.base_url, "api_key": "svc_test", "project_id": "p", "timeout": 0.3}
    with closing(DRIVERS[request.param](address)) as made:
        yield made
