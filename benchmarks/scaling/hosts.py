"""Hosts of one installation on this machine: each is `manage.py serve` as deploy/kubernetes runs it. All share one
PostgreSQL, one Redis and one ClickHouse engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.targets.base import Endpoint
from benchmarks.targets.ours import OursPrompt, set_limits
from benchmarks.waiting import wait_until_shipped
from tests.stores import Stores


class WebHost(OursPrompt):
    """A host of two web workers on shared stores. The first one makes the project: all limits, and a managed prompt
    under a rollout."""

    name: ClassVar[str] = "host"
    workers: ClassVar[int] = 2
    # Tasks run on hosts of their own (deploy/kubernetes/base/worker.yaml).
    _parts: ClassVar[list[str]] = ["--without", "celery"]

    def __init__(self, folder: Path, number: int, shared: dict[str, str]) -> None:
        super().__init__(folder / str(number))
        self.environment = {**shared, "HOST_NAME": f"host-{number}", "METRICS_PORT": "0"}

    def _launch(self, command: list[str], ready: str, environment: dict[str, str] | None = None) -> None:
        self.environment |= environment or {}
        super()._launch([*command, *self._parts], ready, self.environment)

    def _bootstrap(self, manage: list[str], environment: dict[str, str], name: str = "bench") -> dict[str, str]:
        return super()._bootstrap(manage, self.environment, name)

    def _prepare(self, api: str, mock_port: int, headers: dict[str, str]) -> None:
        super()._prepare(api, mock_port, headers)
        set_limits(api, headers)

    def join(self, first: Endpoint) -> Endpoint:
        port, _ = self._serve()
        return replace(first, port=port)

    @property
    def spool(self) -> Path:
        return self.workspace / "var" / "spool"


class Installation:
    def __init__(self, folder: Path, stack: ExitStack, mock_port: int) -> None:
        self._folder, self._stack, self._mock_port = folder, stack, mock_port
        self.stores = Stores(folder, stack)
        self.hosts: list[WebHost] = []
        self.endpoints: list[Endpoint] = []

    def grow(self, to: int) -> None:
        if not self.hosts:
            self.endpoints.append(self._new().start(self._mock_port))
        while len(self.hosts) < to:
            self.endpoints.append(self._new().join(self.endpoints[0]))

    def wait_until_shipped(self) -> None:
        for host in self.hosts:
            wait_until_shipped(host.spool)

    def _new(self) -> WebHost:
        host = WebHost(self._folder, len(self.hosts) + 1, self.stores.environment)
        self.hosts.append(host)
        self._stack.callback(host.stop)
        return host


def without_prompt(endpoint: Endpoint) -> Endpoint:
    own: Iterable[tuple[str, Any]] = ((k, v) for k, v in endpoint.fields.items() if not k.startswith("prompt_"))
    return replace(endpoint, fields=dict(own))


@contextmanager
def installation(folder: Path, mock_port: int) -> Iterator[Installation]:
    """Yields an installation without hosts, in a folder that other users can enter: PostgreSQL does not run as root."""
    folder.chmod(0o755)
    with ExitStack() as stack:
        yield Installation(folder, stack, mock_port)
