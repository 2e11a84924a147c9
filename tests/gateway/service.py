"""A gateway as its operator runs it: a fresh VAR_DIR with SQLite, a Redis, and ASGI workers as processes of their own.

Each worker has its own port, so that a test can choose the one it calls. Environment variables shorten waiting times.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
from openai import OpenAI

from analytics.request_log.record import RequestRecord, SpoolEntry
from tests.described import check, operation_path
from tests.fakes.scripted import ScriptedServer
from tests.gateway.spooled import Spooled
from tests.gateway.wire import ENDPOINT, bearer
from tests.migrated import place_database
from tests.services import START_SECONDS, start_redis
from tests.waiting import TIMEOUT_SECONDS

ROOT = Path(__file__).resolve().parent.parent.parent
# This model of provider openai has a price before the first request.
PRICED_MODEL = "priced-1"
# The models of the recorded turns of coding agents have their vendors' prices before the first request, too: US dollars
# for a million tokens (https://platform.claude.com/docs/en/about-claude/pricing, https://platform.openai.com/docs/pricing).
AGENT_PRICES: tuple[dict[str, Any], ...] = (
    {
        "provider": "anthropic",
        "model": "claude-sonnet-4-5",
        "input": "3",
        "output": "15",
        "cache_read": "0.3",
        "cache_write": "3.75",
        "terms": {"rates": {"cache_write_1h": "6"}},
    },
    {"provider": "openai", "model": "gpt-5-codex", "input": "1.25", "output": "10", "cache_read": "0.125"},
)
PROVIDER_SECRET = "sk-canary-provider-0123456789abcdefghijklmnop"

SETTINGS = {
    # A worker learns of changes only by announcement: it reads none by itself while the tests run.
    "SNAPSHOT_SECONDS": "3600",
    "HEARTBEAT_SECONDS": "0.3",
    "UPSTREAM_CONNECT_SECONDS": "1",
    "UPSTREAM_FIRST_BYTE_SECONDS": "2",
    "UPSTREAM_IDLE_SECONDS": "2",
    "UPSTREAM_TTFT_SECONDS": "4",
    "CACHE_REDIS_SECONDS": "3",
    "LIMITS_REDIS_SECONDS": "5",
    "GATEWAY_BODY_SECONDS": "3",
}

# These sockets reserve the ports that were given out.
_RESERVED: list[socket.socket] = []

T = TypeVar("T")
Content = bytes | dict[str, Any] | Iterator[bytes]


class CheckedClient(httpx2.Client):
    """A client that looks up every whole answer in the OpenAPI document."""

    def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        response = super().send(request, stream=stream, **options)
        path = operation_path(request.url.raw_path.decode("ascii"))
        body = None if stream else response.content
        check(path, request.method, response.status_code, response.headers.get("content-type", ""), body)
        return response


class Seeder:
    """A child process that makes projects, keys and integrations in the service's database (`seed.py`)."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.gateway.seed"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, do: str, **command: Any) -> dict[str, Any]:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(json.dumps({"do": do, **command}) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        assert line, f"{do} failed, see the traceback above"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        self._child.stdout.close()
        self._child.wait(TIMEOUT_SECONDS)


class GatewayService:
    """Two workers on one VAR_DIR, with their `ports`. All processes are stopped on exit."""

    application = "config.asgi:application"

    def __init__(self, *, workers: int = 2, settings: dict[str, str] | None = None) -> None:
        # The directory's name is short: a Unix socket's path has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="gwt-", dir="/tmp"))
        self.var = self.folder / "var"
        self.database = self.var / "db.sqlite3"
        self.spooled = Spooled(self.var / "spool")
        self.log = self.folder / "workers.log"
        self._reserved = [reserved_port() for _ in range(workers)]
        self.ports: list[int] = [holder.getsockname()[1] for holder in self._reserved]
        self._settings = settings or {}
        self._children: list[subprocess.Popen[bytes]] = []
        self.client = CheckedClient(timeout=2 * TIMEOUT_SECONDS, limits=httpx2.Limits(max_keepalive_connections=100))

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def _start(self, stack: ExitStack) -> None:
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        for holder in self._reserved:
            stack.callback(holder.close)
        self.var.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "VAR_DIR": str(self.var),
            **self._start_stores(stack),
            "SANDBOX": "0",
            "ALLOW_PRIVATE_UPSTREAMS": "1",
            "DJANGO_SETTINGS_MODULE": "config.settings.base",
            "PYTHONWARNINGS": "default",
            **SETTINGS,
            **self._settings,
        }
        self.seeder = Seeder(self.environment)
        stack.callback(self.seeder.close)
        self.seeder.call("set_price", provider="openai", model=PRICED_MODEL, input="2", output="8")
        for price in AGENT_PRICES:
            self.seeder.call("set_price", **price)
        stack.callback(self._stop_workers)
        for port in self.ports:
            self.start_worker(port)
        for port in self.ports:
            self.wait_until_serving(port)
        stack.callback(self.client.close)

    def _start_stores(self, stack: ExitStack) -> dict[str, str]:
        """Starts the stores and makes the tables; returns the environment variables that lead to them."""
        self.redis, redis_url = start_redis(self.folder / "redis")
        stack.callback(lambda: self.redis.stop())  # A test may have started another one at this place.
        place_database(self.var)
        return {"REDIS_URL": redis_url}

    def environment_of(self, port: int) -> dict[str, str]:
        """Returns the environment variables of the worker that listens at this port."""
        return self.environment

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def _stop_workers(self) -> None:
        for child in self._children:
            child.terminate()
        for child in self._children:
            try:
                child.wait(TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def manage(self, *words: str) -> str:
        command = [sys.executable, "manage.py", *words]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start_worker(self, port: int, *, graceful_seconds: int = 3) -> None:
        options = ["--host", "127.0.0.1", "--port", str(port), "--no-access-log"]
        # The workers speak HTTP by the same class and with the same options as those of `serve`.
        options += ["--http", "config.web.protocol:BoundedProtocol", "--ws", "none"]
        options += ["--no-proxy-headers", "--no-server-header", "--no-date-header"]
        options += ["--timeout-graceful-shutdown", str(graceful_seconds)]
        # An idle connection stays open for long, so that none is closed just when a client uses it again.
        options += ["--timeout-keep-alive", "3600"]
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "uvicorn", self.application, *options],
                cwd=ROOT,
                env=self.environment_of(port),
                stdout=log,
                stderr=log,
            )
        self._children.append(child)

    def kill_worker(self, number: int) -> None:
        """Kills a worker with SIGKILL and starts another one in its place."""
        self._children[number].kill()
        self._children[number].wait()
        self.start_worker(self.ports[number])
        self._children[number] = self._children.pop()
        self.wait_until_serving(self.ports[number])

    @contextmanager
    def held(self) -> Iterator[None]:
        """Stops the workers wherever they are, and lets them go on afterwards."""
        for child in self._children:
            child.send_signal(signal.SIGSTOP)
            os.waitpid(child.pid, os.WUNTRACED)
        try:
            yield
        finally:
            for child in self._children:
                child.send_signal(signal.SIGCONT)

    def wait_until_serving(self, port: int) -> None:
        ready = self.until(lambda: accepts(port), bool, seconds=START_SECONDS)
        assert ready, self.log.read_text(errors="replace")[-4000:]

    def base_url(self, port: int | None = None) -> str:
        return f"http://127.0.0.1:{port or self.ports[0]}"

    def new_project(
        self,
        *,
        base_urls: dict[str, str] | None = None,
        secret: str = PROVIDER_SECRET,
        routing: dict[str, Any] | None = None,
        integrations: Iterable[dict[str, Any]] = (),
        prices: Iterable[dict[str, Any]] = (),
    ) -> Gateway:
        """Makes a project with a key of both scopes, an integration for each provider in `base_urls`, and the rows
        given whole (their fields are those of `seed.py`); `prices` are its own."""
        plain = [
            {"provider": provider, "base_url": url, "api_key": secret} for provider, url in (base_urls or {}).items()
        ]
        made = self.seeder.call(
            "make_project",
            name=f"project {time.monotonic_ns()}",
            integrations=[*plain, *integrations],
            prices=[*prices],
            keys=[{"scopes": ["gateway", "manage"]}],
        )
        if routing:
            self.set_routing(made["project_id"], **routing)
        return Gateway(service=self, project_id=made["project_id"], key=made["keys"][0])

    def set_routing(self, project_id: str, **settings: Any) -> None:
        """Changes the project's gateway settings, as an operator does in the admin."""
        self.seeder.call("set_routing", project_id=project_id, **settings)

    def make_key(self, project_id: str, *, scopes: list[str] | None = None, expires_in: float | None = None) -> str:
        made = self.seeder.call("make_key", project_id=project_id, scopes=scopes or ["gateway"], expires_in=expires_in)
        key: str = made["key"]
        return key

    def revoke_key(self, key: str) -> None:
        self.seeder.call("revoke_key", key=key)

    def until(self, ask: Callable[[], T], good: Callable[[T], bool], *, seconds: float = TIMEOUT_SECONDS) -> T:
        """Repeats `ask` until its result satisfies `good` or the time is over; returns the last result."""
        deadline = time.monotonic() + seconds
        while True:
            answer = ask()
            if good(answer) or time.monotonic() > deadline:
                return answer
            time.sleep(0.02)

    def entries(self, request_id: str) -> list[SpoolEntry]:
        """Returns the records that the workers spooled for a request, once there is one."""

        return self.until(lambda: self.spooled.of_request(request_id), bool)


@dataclass
class Gateway:
    """One project of the service, as its client sees it."""

    service: GatewayService
    project_id: str
    key: str
    upstream: ScriptedServer = field(init=False)

    @property
    def client(self) -> httpx2.Client:
        self.service.client.base_url = self.service.base_url()
        return self.service.client

    @property
    def port(self) -> int:
        return self.service.ports[0]

    @property
    def headers(self) -> dict[str, str]:
        return bearer(self.key)

    def post(
        self, content: Content, *, headers: dict[str, Any] | None = None, key: str = "", port: int | None = None
    ) -> httpx2.Response:
        """Sends POST /chat/completions and returns the whole answer."""
        url = self.service.base_url(port) + ENDPOINT
        sent = json.dumps(content).encode() if isinstance(content, dict) else content
        return self.service.client.post(url, content=sent, headers={**bearer(key or self.key), **(headers or {})})

    def openai(self, **options: Any) -> OpenAI:
        """Returns the official client, configured with nothing but base URL and key."""
        return OpenAI(base_url=f"{self.service.base_url()}/api/gateway/v1", api_key=self.key, max_retries=0, **options)

    def manage(self, method: str, path: str, content: dict[str, Any] | None = None) -> httpx2.Response:
        """Calls the management API as this project."""
        headers = {"authorization": f"Bearer {self.key}", "x-project-id": self.project_id}
        return self.service.client.request(
            method, f"{self.service.base_url()}/api/llm/{path}", json=content, headers=headers
        )

    def record(self, response: httpx2.Response | str) -> RequestRecord:
        """Returns the record of a request. Fails when there is none or more than one."""
        request_id = response if isinstance(response, str) else response.headers["x-request-id"]
        (entry,) = self.service.entries(request_id)
        return entry.record


def free_port() -> int:
    """Returns a port that no other process gets before this process ends: a socket kept here reserves it without
    listening, so a server that asks for the port by number may listen there."""
    _RESERVED.append(reserved_port())
    port: int = _RESERVED[-1].getsockname()[1]
    return port


def reserved_port() -> socket.socket:
    """Returns a socket that reserves its port: the system gives the port to no process that asks for any while the
    socket is open, and a server that asks for it by number may listen there."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder


def accepts(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
