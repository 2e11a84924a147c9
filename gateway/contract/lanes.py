"""Two check processes a worker, so that one project's schemas do not cost another its checks.

A project whose check overran goes to the slow process for a while, with what it has waiting: whoever sends schemas that
explode waits behind himself. Others wait once for the check that was under way, at most CHECK_SECONDS.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from gateway.contract.checker_process import Check, CheckMovedError, CheckProcess

SLOW_SECONDS = 60.0
# The memory of who overran is cleared of the past when it holds more projects.
_MAX_PROJECTS = 1_000


class CheckLanes:
    """The usual process and the slow one, and which projects use the latter until when (monotonic seconds)."""

    def __init__(self) -> None:
        self._usual = CheckProcess("contract")
        self._slow = CheckProcess("contract-slow")
        self._slow_until: dict[UUID, float] = {}

    async def violation(self, project_id: UUID, schema: bytes, contents: Sequence[str]) -> tuple[int, str] | None:
        """Returns the index of the first text that is not of the schema, and why; None when all are.

        Raises CheckTooLongError when that could not be found out in time.
        """
        check = Check(
            schema,
            contents,
            belongs_here=lambda: not self._is_slow(project_id),
            on_overrun=lambda: self._remember(project_id),
        )
        try:
            return await self._usual.violation(check)
        except CheckMovedError:
            return await self._slow.violation(replace(check, belongs_here=lambda: True))

    def close(self) -> None:
        self._usual.close()
        self._slow.close()

    def _is_slow(self, project_id: UUID) -> bool:
        return self._slow_until.get(project_id, 0.0) > time.monotonic()

    def _remember(self, project_id: UUID) -> None:
        now = time.monotonic()
        if len(self._slow_until) >= _MAX_PROJECTS:
            self._slow_until = {project: until for project, until in self._slow_until.items() if until > now}
        self._slow_until[project_id] = now + SLOW_SECONDS


check_lanes = CheckLanes()
atexit.register(check_lanes.close)
