"""One connection to each primary of a cluster.

All keys of a project are in one slot, so each command goes to one primary. `core.redis.cluster_map` reads the map from
the nodes; a node that no longer holds a slot says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from django.conf import settings

from core.processes.background_tasks import keep_running, watch
from core.redis.clients import node_connection
from core.redis.cluster_map import ClusterMap, Node
from core.redis.failures import REDIS_ERRORS, reason
from gateway.limits.channel import Command, PlainCommand, RedisAwayError
from gateway.limits.connection import Connection, Outage
from gateway.limits.server import CONNECT_SECONDS, ServerConnection

_READ_AGAIN_SECONDS = 0.5
# Many commands may tell at once that a slot has moved.
_MIN_READ_SECONDS = 0.05
# While a slot moves, its keys are at two nodes for some hundredths of a second, and neither can run a script.
_TRY_AGAIN_SECONDS = 0.025
_MAX_REDIRECTS = 40
_MAX_PROJECTS = 4096


class ClusterConnection(Connection):
    def __init__(self, url: str, *, timeout: float, on_return: Callable[[], None]) -> None:
        self._url = url
        self._timeout = timeout
        self._on_return = on_return
        self._loop = asyncio.get_running_loop()
        self._map = ClusterMap(url, seconds=CONNECT_SECONDS)
        self._servers: dict[Node, ServerConnection] = {}
        # Where the commands of a project go, until the map changes.
        self._routes: dict[str, ServerConnection] = {}
        self._outage = Outage(lambda: self.is_open)
        self._down_until = 0.0
        self._outdated = asyncio.Event()
        self._tried = asyncio.Event()
        self._passing: set[asyncio.Task[None]] = set()
        self._task = keep_running("gateway.limits.cluster", self._follow)

    @property
    def is_open(self) -> bool:
        is_down = self._loop.time() < self._down_until
        return bool(self._servers) and not is_down and all(server.is_open for server in self._servers.values())

    def reaches(self, project: str) -> bool:
        server = self._server_of(project)
        return server is not None and server.is_open

    async def tried(self) -> None:
        await self._tried.wait()

    def ask(self, command: Command) -> None:
        server = self._server_of(command.project)
        if server is None:
            raise RedisAwayError
        server.ask(command)

    async def answered(self) -> None:
        while self._passing:
            await asyncio.wait(self._passing)
        for server in list(self._servers.values()):
            await server.answered()

    def leave(self, reason: str) -> None:
        self._outdated.set()

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        for task in self._passing:
            task.cancel()
        servers, self._servers = self._servers, {}
        self._routes.clear()
        await asyncio.gather(*(server.close() for server in servers.values()))
        await self._map.close()

    async def _follow(self) -> None:
        """Re-reads the cluster's map when a node says it is outdated, while a primary is down, and periodically."""
        while True:
            self._outdated.clear()
            try:
                await self._map.read()
            except REDIS_ERRORS as error:
                self._outage.begin(reason(error))
            else:
                await self._adopt(self._map.primaries())
            self._tried.set()
            await asyncio.sleep(_MIN_READ_SECONDS)
            pause = settings.REDIS_PING_SECONDS if self.is_open else _READ_AGAIN_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._outdated.wait()

    async def _adopt(self, primaries: set[Node]) -> None:
        new = [self._server_at(node) for node in primaries - self._servers.keys()]
        gone = [self._servers.pop(node) for node in self._servers.keys() - primaries]
        self._routes.clear()
        await asyncio.gather(*(server.close() for server in gone), *(server.tried() for server in new))
        self._outage.end()

    def _server_at(self, node: Node) -> ServerConnection:
        found = self._servers.get(node)
        if found is None:
            found = self._servers[node] = ServerConnection(
                partial(node_connection, self._url, *node),
                timeout=self._timeout,
                outage=self._outage,
                on_return=self._on_return,
                on_redirected=partial(self._redirect, node),
            )
        return found

    def _server_of(self, project: str) -> ServerConnection | None:
        found = self._routes.get(project)
        if found is None:
            node = self._map.primary_of(project)
            found = self._servers.get(node) if node is not None else None
            if found is not None:
                if len(self._routes) >= _MAX_PROJECTS:
                    self._routes.clear()
                self._routes[project] = found
        return found

    def _redirect(self, asked: Node, command: Command, error: str) -> None:
        """Follows the redirections of https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/,
        "Redirection and resharding"."""
        kind, *where = error.split(" ")
        command.redirects += 1
        if kind == "CLUSTERDOWN" or command.redirects > _MAX_REDIRECTS:
            self._down_until = self._loop.time() + _READ_AGAIN_SECONDS
            self._outdated.set()
            self._outage.begin(kind)
            command.failed(RedisAwayError())
        elif kind == "TRYAGAIN":
            self._pass_on(command, None)
        else:
            host, _, port = where[1].rpartition(":")
            # A node that knows only itself leaves its own address out.
            node = (host or asked[0], int(port))
            if kind == "MOVED":
                self._map.note_moved(int(where[0]), node)
                self._routes.clear()
                self._outdated.set()
            self._pass_on(command, node, by_asking=kind == "ASK")

    def _pass_on(self, command: Command, node: Node | None, *, by_asking: bool = False) -> None:
        task = self._loop.create_task(self._send_to(command, node, by_asking=by_asking), name="gateway.limits.redirect")
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)
        watch(task)

    async def _send_to(self, command: Command, node: Node | None, *, by_asking: bool) -> None:
        try:
            if node is None:
                await asyncio.sleep(_TRY_AGAIN_SECONDS)
                server = self._server_of(command.project)
            else:
                server = self._server_at(node)
                await server.tried()
            if server is None:
                raise RedisAwayError
            if by_asking:
                # It holds for the next command alone, which must not come back for want of the script.
                server.ask(PlainCommand("ASKING"))
                command.data = command.script.in_full(command.data)
            server.ask(command)
        except RedisAwayError as error:
            command.failed(error)
        except asyncio.CancelledError:
            command.failed(RedisAwayError())
            raise
