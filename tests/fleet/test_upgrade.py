"""The former release beside this revision on the same stores, under load, and back again: docs/upgrading.md.

No client may see an error, and each answered request has exactly one row, in the request log and in every rollup.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import pytest
import requests
from clickhouse_driver import Client

from tests.live.fleet import Host, Installation
from tests.live.service import ROOT
from tests.live.test_rolling_restart import Load, Proxy
from tests.night import cases
from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until

_GUIDE = ROOT / "docs" / "upgrading.md"


def former_revision() -> str:
    """Returns the last tag, else the revision that docs/upgrading.md names. Fails if the clone lacks it."""
    tags = _git("tag", "--list", "v*", "--sort=-v:refname", "--merged", "HEAD").decode().split()
    named = re.search(r"revision `([0-9a-f]{40})`", _GUIDE.read_text(encoding="utf-8"))
    revision = tags[0] if tags else (named[1] if named else "")
    found = subprocess.run(["git", "cat-file", "-e", f"{revision}^{{commit}}"], cwd=ROOT, capture_output=True)
    assert revision and found.returncode == 0, f"this clone lacks revision {revision!r}: run git fetch --unshallow"
    return revision


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout


@pytest.fixture
def former(folder: Path) -> Path:
    tree = folder / "former-tree"
    with tarfile.open(fileobj=BytesIO(_git("archive", former_revision()))) as archive:
        archive.extractall(tree, filter="data")
    return tree


class Fleet:
    """Two hosts behind a proxy that asks `/readyz`, each of either version."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._starts = folder, 0
        self.stores = Installation(folder, stack)
        # The stop does not wait this long: a second signal ends it once the proxy has seen the host go.
        self._environment = {**self.stores.environment, "SANDBOX": "1", "PRESTOP_SECONDS": "600"}
        self.proxy = Proxy()
        stack.callback(self.proxy.close)
        self.hosts: dict[str, Host] = {}
        stack.callback(self._kill)

    def start(self, name: str, tree: Path) -> None:
        self._starts += 1
        host = self.hosts[name] = Host(self._folder, f"{name}{self._starts}", self._environment, tree=tree)
        host.wait()
        assert not host.has_ended, host.log[-3000:]
        self.proxy.hosts[name] = host.address or ""
        wait_until(lambda: name in self.proxy.ready, seconds=START_SECONDS, what=f"{name} in the proxy")

    def migrate(self, tree: Path) -> None:
        environment = {**self._environment, "VAR_DIR": str(self._folder / "migrating")}
        command = [sys.executable, "manage.py", "migrate_all", "--verbosity", "0"]
        subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)

    def replace(self, name: str, tree: Path, load: Load) -> None:
        host = self.hosts[name]
        host.process.send_signal(signal.SIGTERM)
        wait_until(lambda: name not in self.proxy.ready, what=f"{name} to be left out")
        load.wait_for_more(3)
        assert host.stop() == 0
        self.start(name, tree)
        load.wait_for_more(3)

    def change_everywhere(self, key: str, project: str) -> None:
        for host in self.hosts.values():
            name = f"made-{uuid4().hex}"
            headers = {"Authorization": f"Bearer {key}", "X-Project-Id": project}
            url = f"{host.address}/api/llm/keys?project_id={project}"
            body = {"name": name, "scopes": ["gateway"]}
            made = requests.post(url, json=body, headers=headers, timeout=TIMEOUT_SECONDS)
            assert made.status_code == 201, made.text
            for reader in self.hosts.values():
                listed = requests.get(
                    f"{reader.address}/api/llm/keys?project_id={project}&limit=100",
                    headers=headers,
                    timeout=TIMEOUT_SECONDS,
                )
                assert name in listed.text

    def _kill(self) -> None:
        for host in self.hosts.values():
            host.kill()

    def stop(self) -> None:
        for host in self.hosts.values():
            host.process.send_signal(signal.SIGTERM)
            wait_until(lambda host=host: "service.stopping" in host.log, what="the host to begin to stop")  # type: ignore[misc]
        # The second signal of each cuts the wait of PRESTOP_SECONDS short; shippers empty the spools before they end.
        assert [host.stop() for host in self.hosts.values()] == [0, 0]


@pytest.fixture
def fleet(folder: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(folder, stack)


def test_upgrade_and_way_back__under_load__no_client_error_and_no_lost_or_doubled_row(
    fleet: Fleet, former: Path
) -> None:
    for name in ("a", "b"):
        fleet.start(name, former)
    first = next(host for host in fleet.hosts.values() if host.printed(r"API key +(\S+)"))
    key, project = first.printed(r"API key +(\S+)") or "", first.printed(r"project id +(\S+)") or ""
    load = Load(fleet.proxy.port, key)
    try:
        load.wait_for_more()
        fleet.migrate(ROOT)
        fleet.change_everywhere(key, project)
        # By day one host goes and comes back beside the former release: both kinds serve together both times.
        upgraded = cases(("a", "b"), by_day=("a",))
        for name, tree in [*((name, ROOT) for name in upgraded), *((name, former) for name in upgraded)]:
            fleet.replace(name, tree, load)
            fleet.change_everywhere(key, project)
    finally:
        load.stop()
    fleet.stop()

    answered = sum(load.answers)
    assert load.errors == []
    # The rollups are compared with the requests figure by figure.
    rows, differing, units = fleet.stores.compare(project)
    assert (rows, differing) == (answered, 0)
    assert units > 0
    with Client.from_url(fleet.stores.clickhouse) as client:
        ((distinct,),) = client.execute("SELECT uniqExact(request_id) FROM llm.requests")
    assert distinct == answered
