"""Runs two checking processes per worker, so that one project's schemas do not cost another project its checks.

A project whose check overran moves to the slow process for a while, with its waiting checks. Other projects wait once
for the running check, at most CHECK_SECONDS.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from gateway.contract.checker_process import Check, CheckMovedError, CheckProcess

SLOW_SECONDS = 60.0
# Expired entries of the slow projects are removed when there are more projects than this.
_MAX_PROJECTS = 1_000


class CheckLanes:
    def __init__(self) -> None:
        self._usual = CheckProcess("contract")
        self._slow = CheckProcess("contract-slow")
        self._slow_until: dict[UUID, float] = {}

    async def violation(self, project_id: UUID, schema: bytes, contents: Sequence[str]) -> tuple[int, str] | None:
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
