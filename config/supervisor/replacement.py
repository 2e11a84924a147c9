from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from config.supervisor.children import Child, Service, StartError, all_started

logger = logging.getLogger("config.supervisor")

_LEAVE_SECONDS = 3.0


class Replacement:
    """`launch` adds a worker to `web`; `others` are children that may be away for a moment. `force` cuts the end of a
    former worker short."""

    def __init__(
        self,
        web: list[Child],
        others: Callable[[], Iterable[Child]],
        launch: Callable[[Service], Child],
        force: asyncio.Event,
    ) -> None:
        self._web = web
        self._others = others
        self._launch = launch
        self._force = force

    def restarts(self) -> Mapping[Child, int]:
        return {child: child.restarts for child in (*self._web, *self._others())}

    async def replace(self) -> None:
        """Replaces web workers one by one, each by one that serves before the former ends, then restarts the others.
        Raises StartError if a worker does not start, and leaves the rest unchanged."""
        for former in list(self._web):
            await self._replace(former)
        for child in self._others():
            child.restart()

    async def replace_back(self, before: Mapping[Child, int]) -> None:
        """Replaces what was started since `before`, also in place of what died. A worker that fails again is restarted
        until it starts."""
        newer = [child for child, restarts in self.restarts().items() if before.get(child) != restarts]
        for child in newer:
            if child not in self._web:
                child.restart()
                continue
            try:
                await self._replace(child)
            except StartError as error:
                logger.error("secrets.worker_restarted role=%s reason=%s", child.service.role, error)
                child.restart()

    async def _replace(self, former: Child) -> None:
        successor = self._launch(former.service)
        try:
            await all_started([successor])
        except StartError:
            await successor.stop(force=self._force)
            self._web.remove(successor)
            former.announce()
            raise
        former.hang_up()
        # Clients that are busy leave with their next answers; what is idle afterwards closes without one.
        await asyncio.sleep(_LEAVE_SECONDS)
        await former.stop(force=self._force)
        self._web.remove(former)
