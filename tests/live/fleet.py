"""Many hosts started at once on one PostgreSQL, one Redis and one ClickHouse.

    python -m tests.live.fleet --hosts 8 --rounds 20
    python -m tests.live.fleet --hosts 8 --rounds 20 --former ../checkout-of-the-former-version --until 12 --rows 400000

Each round has new stores. With `--former`, a host of that version makes them, `--rows` requests are stored, and it goes
on serving under load while the new hosts start; `--until` takes its later ClickHouse migrations away, so that there is
something to migrate. The results count the hosts that ended, the keys that were shown, and the figures that differ from
the requests.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import requests
from clickhouse_driver import Client

from tests.live.read_only_root import as_asked
from tests.live.service import ROOT, minimal_environment
from tests.live.without_redis import KeyLimit
from tests.services import START_SECONDS, Service
from tests.stores import Stores
from tests.waiting import wait_until

_MODEL = "openai_compatible/echo"
_REQUESTS_A_HOST = 3
_LOAD_PAUSE_SECONDS = 0.05

# The rows span several days, sessions, users, outcomes and retentions; columns that are not named are empty.
_FILL = """
INSERT INTO ingest (
    project_id, ts, request_id, outcome, status_code, session_id, user_id, provider, model, error_type, error_code,
    latency_ms, ttft_ms, cost_known, cost_usd, retention_days
)
SELECT
    {project:UUID}, now64(6) - toIntervalSecond(number * 5 + 7200), generateUUIDv4(),
    if(number % 10 = 0, 'error', 'success'), if(number % 10 = 0, 500, 200), toString(number % 700),
    toString(number % 90), 'openai', toString(number % 3), if(number % 10 = 0, 'api_error', ''),
    if(number % 10 = 0, 'provider_error', ''), number % 900, if(number % 2 = 0, 100, 0), true, 0.001,
    if(number % 2 = 0, 100, 400)
FROM numbers({rows:UInt64})
"""
# The comparison treats all days as over, so that none is left out.
_COMPARE = """
from datetime import UTC, datetime, timedelta
from uuid import UUID
from tests.analytics.request_counts import count_requests
from analytics.reconciliation.services import reconcile
project = UUID({project!r})
report = reconcile([project], now=datetime.now(UTC) + timedelta(days=2), dry_run=True)
print("FOUND", count_requests(project).requests, len(report.differences), report.units)
"""


@dataclass
class Outcome:
    ended: int = 0
    keys_shown: int = 0
    answered: int = 0
    refused: int = 0
    rows: int = 0
    differing: int = 0
    units: int = 0
    seconds: float = 0.0
    waited: list[str] = field(default_factory=list)
    without_redis: str = ""

    @property
    def is_right(self) -> bool:
        return not self.ended and not self.refused and self.rows == self.answered and not self.differing


class Host:
    def __init__(
        self,
        folder: Path,
        name: str,
        environment: Mapping[str, str],
        arguments: Sequence[str] = ("--without", "celery"),
        *,
        tree: Path = ROOT,
    ) -> None:
        self.name = name
        self._shipper = folder / name / "run" / "shipper.pid"
        self._metrics = folder / name / "run" / "metrics.url"
        self._output, self._log = folder / f"{name}.out", folder / f"{name}.log"
        with self._output.open("wb") as output, self._log.open("wb") as log:
            self.process = subprocess.Popen(
                as_asked(folder / name, [sys.executable, "manage.py", "serve", *arguments]),
                cwd=tree,
                env={"HOST_NAME": name, **environment, "VAR_DIR": str(folder / name)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
            )

    @property
    def output(self) -> str:
        return self._output.read_text(encoding="utf-8")

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def printed(self, pattern: str) -> str | None:
        found = re.search(pattern, self.output)
        return found.group(1) if found else None

    @property
    def address(self) -> str | None:
        return self.printed(r"Serving (\S+) .*\n")

    @property
    def metrics(self) -> str:
        return self._metrics.read_text(encoding="utf-8").strip()

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def wait(self) -> None:
        """Returns when the host serves and ships (the tables of both stores are then there), or has ended."""
        wait_until(
            lambda: (self.address and self._shipper.exists()) or self.has_ended or None,
            seconds=8 * START_SECONDS,
            what=f"{self.name} to serve and ship",
        )

    def stop(self) -> int:
        if not self.has_ended:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=4 * START_SECONDS)

    def kill(self) -> None:
        if not self.has_ended:
            self.process.kill()
            self.process.wait()


class Clients:
    def __init__(self, key: str) -> None:
        self._headers = {"Authorization": f"Bearer {key}"}
        self._lock = threading.Lock()
        self.answered = 0
        self.refused = 0

    def ask(self, address: str) -> None:
        body = {"model": _MODEL, "messages": [{"role": "user", "content": "Hello"}], "user": "fleet"}
        url = f"{address}/api/gateway/v1/chat/completions"
        headers = {**self._headers, "x-svc-session-id": "fleet"}
        answer = requests.post(url, json=body, headers=headers, timeout=START_SECONDS)
        with self._lock:
            self.answered += answer.ok
            self.refused += not answer.ok

    @contextmanager
    def load(self, address: str) -> Iterator[None]:
        ended = threading.Event()

        def ask_on() -> None:
            while not ended.wait(_LOAD_PAUSE_SECONDS):
                self.ask(address)

        asking = threading.Thread(target=ask_on)
        asking.start()
        try:
            yield
        finally:
            ended.set()
            asking.join()


class Installation:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self.stores = stores = Stores(folder, stack)
        self.clickhouse = stores.clickhouse_url
        self.environment = {
            **minimal_environment(folder),
            **stores.environment,
            "SANDBOX": "0",
            "WEB_WORKERS": "1",
            "ALLOW_PRIVATE_UPSTREAMS": "1",
        }
        # The first project gets the fake provider as an integration.
        self.environment["OPENAI_COMPATIBLE_BASE_URL"] = self._start_provider(stack)

    def fill(self, project: str, rows: int) -> None:
        client = Client.from_url(f"{self.clickhouse}?server_side_params=1")
        try:
            client.execute(_FILL, {"project": project, "rows": rows}, settings={"max_partitions_per_insert_block": 0})
        finally:
            client.disconnect()

    def compare(self, project: str) -> tuple[int, int, int]:
        ran = subprocess.run(
            [sys.executable, "manage.py", "shell", "--verbosity", "0", "-c", _COMPARE.format(project=project)],
            cwd=ROOT,
            env={**self.environment, "VAR_DIR": str(self._folder / "compare")},
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.search(r"FOUND (\d+) (\d+) (\d+)", ran.stdout)
        if found is None:
            raise AssertionError(f"figures cannot be compared:\n{ran.stderr[-2000:]}")
        rows, differing, units = map(int, found.groups())
        return rows, differing, units

    def _start_provider(self, stack: ExitStack) -> str:
        port_file = self._folder / "sandbox.port"
        command = [sys.executable, str(ROOT / "manage.py"), "sandbox", "--port", "0", "--port-file", str(port_file)]
        provider = Service("sandbox", command, folder=self._folder)
        stack.callback(provider.stop)
        provider.wait_until(lambda: port_file.exists() and port_file.read_text().strip().isdigit())
        return f"http://127.0.0.1:{port_file.read_text().strip()}/v1"


def start_together(
    hosts: int, *, former: Path | None = None, rows: int = 0, keep: Path | None = None, limit: int = 0
) -> Outcome:
    """Runs one round. Its hosts share a `limit` of requests per minute while Redis is away. `former` is the tree of a
    version that makes the stores and keeps serving while the hosts start. With `keep`, the hosts' output is copied
    there if something went wrong."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        outcome = _round(folder, stack, hosts, former, rows, limit)
        if keep is not None and not outcome.is_right:
            shutil.copytree(
                folder, keep / folder.name, ignore=shutil.ignore_patterns("pg", "clickhouse", "redis", "*.sock")
            )
        return outcome


def _round(folder: Path, stack: ExitStack, hosts: int, former: Path | None, rows: int, limit: int) -> Outcome:
    stores, outcome = Installation(folder, stack), Outcome()
    running: list[Host] = []
    stack.callback(_kill, running)
    if former is not None:
        running.append(_started_former(folder, stores, former))
        project, key = _first_key(running)
        stores.fill(project, rows)
        clients = Clients(key)
        with clients.load(running[0].address or ""):
            _start(hosts, folder, stores, running, outcome)
    else:
        _start(hosts, folder, stores, running, outcome)
        project, key = _first_key(running)
        clients = Clients(key)
    for host in running:
        for _ in range(_REQUESTS_A_HOST if host.address and not host.has_ended else 0):
            clients.ask(host.address or "")
    outcome.keys_shown = sum(host.printed(r"API key +(\S+)") is not None for host in running)
    outcome.waited = [host.name for host in running if re.search(r"(lock|lease)\.waiting", host.log)]
    if limit:
        headers = {"Authorization": f"Bearer {key}", "X-Project-Id": project}
        keys = KeyLimit([host.address or "" for host in running], headers, limit)
        keys.prepare([host.metrics for host in running])
        keys.lose(stores.stores.redis)
        outcome.without_redis = keys.refuse()
        clients.answered += keys.asked  # Each has its row, also if it was refused.
    # The hosts' shippers empty their spools before the hosts end.
    outcome.ended += sum(host.stop() != 0 for host in running if not host.has_ended)
    outcome.answered, outcome.refused = clients.answered + rows, clients.refused
    outcome.rows, outcome.differing, outcome.units = stores.compare(project)
    return outcome


def _kill(hosts: list[Host]) -> None:
    for host in hosts:
        host.kill()


def _start(hosts: int, folder: Path, stores: Installation, running: list[Host], outcome: Outcome) -> None:
    began = time.monotonic()
    started = [Host(folder, f"host-{number}", stores.environment) for number in range(1, hosts + 1)]
    running += started
    for host in started:
        host.wait()
    outcome.seconds = time.monotonic() - began
    outcome.ended = sum(host.has_ended for host in started)


def _started_former(folder: Path, stores: Installation, tree: Path) -> Host:
    host = Host(folder, "former", stores.environment, tree=tree)
    host.wait()
    if host.has_ended:
        raise AssertionError(f"the host of the former version ended:\n{host.log[-2000:]}")
    return host


def _first_key(hosts: list[Host]) -> tuple[str, str]:
    for host in hosts:
        key, project = host.printed(r"API key +(\S+)"), host.printed(r"project id +(\S+)")
        if key and project:
            return project, key
    raise AssertionError("no host showed a key:\n" + "\n".join(host.log[-1000:] for host in hosts))


@contextmanager
def former_tree(checkout: Path, until: int) -> Iterator[Path]:
    """Yields a copy of a version's code without the ClickHouse migrations above number `until`."""
    with tempfile.TemporaryDirectory(prefix="fl-tree-") as folder:
        tree = Path(folder) / "tree"
        # Compiled modules are copied too: they go by the age of their source, which a copy keeps.
        unused = shutil.ignore_patterns(".venv", ".git", "var", "tests", "docs", "benchmarks", ".*_cache")
        shutil.copytree(checkout, tree, ignore=unused)
        for file in (tree / "analytics" / "clickhouse" / "migrations").glob("[0-9]*_*.sql"):
            if int(file.name.partition("_")[0]) > until:
                file.unlink()
        yield tree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--former", type=Path, help="checkout of the version that makes the stores")
    parser.add_argument("--until", type=int, default=10_000, help="its last ClickHouse migration")
    parser.add_argument("--rows", type=int, default=400_000, help="stored requests, with --former")
    parser.add_argument("--keep", type=Path, help="folder for the output of rounds that went wrong")
    options = parser.parse_args()
    wrong = 0
    with ExitStack() as stack:
        former = stack.enter_context(former_tree(options.former, options.until)) if options.former else None
        for number in range(1, options.rounds + 1):
            rows = options.rows if former else 0
            outcome = start_together(options.hosts, former=former, rows=rows, keep=options.keep)
            wrong += not (outcome.is_right and outcome.keys_shown == 1)
            sys.stdout.write(f"round {number}: {json.dumps(vars(outcome))}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{options.rounds} rounds of {options.hosts} hosts, {wrong} of them wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.nice(5)
    sys.exit(main())
