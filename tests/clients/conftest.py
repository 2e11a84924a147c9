from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import CLIENTS, ENVIRONMENTS, NODE_SCRIPTS, ROOT, Client
from tests.clients.page import snippets_below
from tests.clients.provider import RecordingSandbox
from tests.gateway.conftest import LONG_TIMEOUTS, assert_log_is_clean
from tests.gateway.service import Gateway, GatewayService

INSTALL_SECONDS = 600
CLIENT_SECONDS = 240

Results = dict[str, dict[str, Any]]
Play = Callable[[Client], Results]


def made(target: str) -> None:
    """Fails with make's output if that is impossible, as without Node.js."""
    # The variables of a make around this one would change what it does.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    with (ROOT / "Makefile").open() as makefile:
        # Two runs of the suite install one after the other.
        fcntl.flock(makefile, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", target, f"PYTHON={sys.executable}"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_SECONDS,
        )
    assert done.returncode == 0, f"make {target} failed:\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="session")
def installed() -> None:
    made("clients")
    # Node looks for packages from the script's own folder.
    for script in NODE_SCRIPTS.glob("*.mjs"):
        shutil.copy(script, ENVIRONMENTS / "node")


@pytest.fixture(scope="session")
def service() -> Iterator[GatewayService]:
    with GatewayService(workers=1, settings=LONG_TIMEOUTS) as running:
        yield running
        assert_log_is_clean(running)


@pytest.fixture(scope="session")
def provider() -> Iterator[RecordingSandbox]:
    with RecordingSandbox() as running:
        yield running


@pytest.fixture(scope="session")
def gateway(service: GatewayService, provider: RecordingSandbox) -> Gateway:
    made = service.new_project(base_urls={"sandbox": provider.base_url})
    service.manage("refresh_model_lists", "--project", made.project_id)
    return made


@pytest.fixture(scope="session")
def play(installed: None, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Play:
    @cache
    def results(client: Client) -> Results:
        return played(client, gateway, tmp_path_factory.mktemp(client.name))

    return results


def played(client: Client, gateway: Gateway, folder: Path) -> Results:
    cases = [f"{name}.{case}" for name in client.variants for case in client.cases_of(name)]
    return run(client, gateway, folder, cases, snippets=snippets_of(client, folder))


def run(
    client: Client,
    gateway: Gateway,
    folder: Path,
    cases: Iterable[str],
    *,
    snippets: Mapping[str, str] | None = None,
    model: str = "sandbox/echo",
) -> Results:
    path = folder / "results.json"
    plan = {
        "cases": {name: prompt_of(client, *name.split(".")) for name in cases},
        "snippets": dict(snippets or {}),
    }
    done = subprocess.run(
        client.command,
        input=json.dumps(plan),
        env={**environment_of(gateway, folder), "RESULTS": str(path), "MODEL": model},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=CLIENT_SECONDS,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    results: Results = json.loads(path.read_text())
    return results


def snippets_of(client: Client, folder: Path) -> dict[str, str]:
    snippets = {snippet.name: snippet.source for snippet in snippets_below(client.title)}
    if client.environment != "node":
        return snippets
    # Node looks for packages from the script's own folder.
    paths = {name: ENVIRONMENTS / "node" / f"{folder.name}-{name}.mjs" for name in snippets}
    for name, source in snippets.items():
        paths[name].write_text(source)
    return {name: str(path) for name, path in paths.items()}


def environment_of(gateway: Gateway, folder: Path) -> dict[str, str]:
    """Does not pass on the suite's own variables."""
    root = f"{gateway.service.base_url()}/api/gateway"
    return {
        # The Node.js of the lock file, which the newest clients need, comes before the machine's.
        "PATH": os.pathsep.join([*map(str, ENVIRONMENTS.glob("node/node_modules/node-*/bin")), os.environ["PATH"]]),
        "HOME": str(folder),
        "OPENAI_BASE_URL": f"{root}/v1",
        "OPENAI_API_KEY": gateway.key,
        "ANTHROPIC_BASE_URL": root,
        "ANTHROPIC_API_KEY": gateway.key,
        # LiteLLM would read its list of prices from the network.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def prompt_of(client: Client, variant: str, case: str) -> str:
    """Returns the words that find a case's requests at the provider; no other case begins with them."""
    return f"Hello from {client.name} by {variant} for {case}."


def ways(*cases: str) -> pytest.MarkDecorator:
    found = [
        (client, variant, case)
        for client in CLIENTS
        for variant in client.variants
        for case in cases
        if case in client.cases_of(variant)
    ]
    names = [f"{client.name}-{variant}-{case}" for client, variant, case in found]
    return pytest.mark.parametrize(("client", "variant", "case"), found, ids=names)
