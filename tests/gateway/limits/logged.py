"""Two hosts of a gateway whose records reach one request log."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx2
import redis
from clickhouse_driver import Client

from analytics.request_log.record import SpoolEntry
from gateway.limits.keys import Scope
from gateway.limits.units import to_units
from tests.fakes.scripted import DONE, FINISH, ROLE, Step, chunk, completion, endless, hang, status
from tests.fakes.upstream import Connection, Received
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.service import ROOT, Gateway, GatewayService
from tests.gateway.spooled import spooled_entries
from tests.gateway.wire import ENDPOINT, bearer
from tests.services import start_redis
from tests.stores import Stores, migrate
from tests.waiting import TIMEOUT_SECONDS

# The leases and the settling are shorter than in operation. Redis and the request log may take longer to answer: a busy
# machine delays them, and after these times the workers admit without them (docs/limits.md).
SHORTENED = {
    "LIMITS_LEASE_SECONDS": "15",
    "LIMITS_REDIS_SECONDS": "6",
    "LIMITS_LOG_SECONDS": "6",
    "LIMITS_SETTLE_SECONDS": "30",
    "UPSTREAM_FIRST_BYTE_SECONDS": "2",
}


class LoggedService(GatewayService):
    """Two hosts of one installation, with a VAR_DIR, and so a spool and a shipper, of their own; PostgreSQL, Redis and
    the request log are shared. Each host has one worker, at the port of its number.

    Redis and hosts may be killed and started again.
    """

    def __init__(self) -> None:
        super().__init__(settings={**LONG_TIMEOUTS, **SHORTENED})
        self.hosts = [self.var, self.folder / "var-2"]

    def _start(self, stack: ExitStack) -> None:
        super()._start(stack)
        self._shippers = [self._start_shipper(number) for number in range(len(self.hosts))]
        stack.callback(self._stop_shippers)

    def _start_stores(self, stack: ExitStack) -> dict[str, str]:
        # PostgreSQL may run as another user, who has to enter the folder.
        self.folder.chmod(0o755)
        self.stores = Stores(self.folder, stack)
        self.redis, self.engine = self.stores.redis, self.stores.engine
        migrate(self.folder, self.stores.environment)
        return self.stores.environment

    def environment_of(self, port: int) -> dict[str, str]:
        return {**self.environment, "VAR_DIR": str(self.hosts[self.ports.index(port)])}

    def _start_shipper(self, number: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "manage.py", "ship_records"]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, cwd=ROOT, env=self.environment_of(self.ports[number]), stdout=log, stderr=log
            )

    def _stop_shippers(self) -> None:
        for shipper in self._shippers:
            shipper.terminate()
        for shipper in self._shippers:
            shipper.wait(TIMEOUT_SECONDS)

    @contextmanager
    def host_killed(self, number: int) -> Iterator[None]:
        """Kills a host's processes with SIGKILL, and starts it again afterwards with the VAR_DIR that it left."""
        for process in (self._children[number], self._shippers[number]):
            process.kill()
            process.wait()
        yield
        self.kill_worker(number)
        self._shippers[number] = self._start_shipper(number)

    def spooled_entries(self) -> list[SpoolEntry]:
        """Returns what both hosts have in their spools."""
        return [entry for var in self.hosts for entry in spooled_entries(var / "spool")]

    def empty_redis(self) -> None:
        """Kills Redis with SIGKILL and starts an empty one at the same address."""
        self.redis.stop(signal.SIGKILL)
        folder = self.folder / "redis"
        shutil.rmtree(folder)
        self.redis, _ = start_redis(folder)
        self.stores.redis = self.redis

    def redis_client(self) -> redis.Redis:
        return redis.Redis.from_url(self.environment["REDIS_URL"])

    def logged_units(self, scope: Scope) -> int:
        """Returns the spend of a scope by the request log, in which all requests of a test are of one month."""
        with Client.from_url(self.stores.clickhouse_url) as client:
            found = client.execute(
                "SELECT sum(toDecimal128(cost_usd, 10)) FROM llm.requests WHERE project_id = %(project)s"
                " AND %(session)s IN ('', session_id) AND %(user)s IN ('', user_id) AND %(key)s IN (0, api_key_id)"
                " AND %(team)s IN (0, team_id)",
                {
                    "project": scope.project,
                    "session": scope.session_id,
                    "user": scope.user_id,
                    "key": scope.key_id,
                    "team": scope.team_id,
                },
            )
        return to_units(Decimal(found[0][0] or 0))

    def counted(self, scope: Scope) -> tuple[int, int, bool]:
        """Returns the spend, the reservations, and whether anything is in doubt."""
        with self.redis_client() as client:
            found: Any = client.hmget(scope.spend, "base", "after", "reserved", "unsure")
        base, after, reserved, unsure = found
        return int(base or 0) + int(after or 0), int(reserved or 0), unsure is not None


def answer_by_user() -> Step:
    """Returns a step that answers according to the request's `user`: ok-<tokens of the answer>, 500, hang or stream."""

    async def step(request: Received, connection: Connection) -> None:
        sent = json.loads(request.body)
        outcome, _, tokens = sent["user"].partition("-")
        if outcome == "ok":
            await asyncio.sleep(random.random() * 0.3)
            usage = {"prompt_tokens": 11, "completion_tokens": int(tokens), "total_tokens": 11 + int(tokens)}
            if sent.get("stream"):
                await connection.start_stream()
                for piece in (ROLE, chunk({"content": "x"}), FINISH, chunk(None, usage=usage), DONE):
                    await connection.send_chunk(piece)
                await connection.end_stream()
                return
            body = json.dumps(completion("x", usage=usage)).encode()
            await connection.send_whole(200, body, {"content-type": "application/json"})
        elif outcome == "500":
            await status(500)(request, connection)
        elif outcome == "hang":
            await hang(request, connection)
        else:
            await endless(0.02)(request, connection)

    return step


@dataclass
class Crowd:
    """Many clients at once, each with an outcome of its own. `statuses` counts the answers, 0 stands for those that
    broke off."""

    gateway: Gateway
    model: str
    max_tokens: int
    seed: int = 1
    # The headers by which the requests name their callers; each request draws one of them.
    callers: Sequence[Mapping[str, str]] = ({},)
    statuses: Counter[int] = field(default_factory=Counter)

    async def ask(self, count: int, *, over_seconds: float) -> None:
        chance = random.Random(self.seed)
        limits = httpx2.Limits(max_connections=count, max_keepalive_connections=0)
        async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, limits=limits) as client, asyncio.TaskGroup() as tasks:
            for _ in range(count):
                tasks.create_task(self._ask(client, random.Random(chance.random()), over_seconds))

    async def _ask(self, client: httpx2.AsyncClient, chance: random.Random, over_seconds: float) -> None:
        await asyncio.sleep(chance.random() * over_seconds)
        outcome = chance.choices(["ok", "500", "hang", "stream"], [8, 2, 1, 1])[0]
        user = f"ok-{chance.randint(1, self.max_tokens)}" if outcome == "ok" else outcome
        sent = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "messages": [{"role": "user", "content": "x" * chance.randint(40, 400)}],
            "stream": outcome == "stream" or chance.random() < 0.3,
            "user": user,
        }
        url = self.gateway.service.base_url(chance.choice(self.gateway.service.ports)) + ENDPOINT
        timeout = chance.random() if outcome in ("stream", "hang") or chance.random() < 0.1 else TIMEOUT_SECONDS
        try:
            async with asyncio.timeout(timeout):
                headers = {**bearer(self.gateway.key), **chance.choice(self.callers)}
                answer = await client.post(url, json=sent, headers=headers)
                self.statuses[answer.status_code] += 1
        except (TimeoutError, httpx2.HTTPError):
            self.statuses[0] += 1
