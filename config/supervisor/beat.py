"""A Celery beat scheduler that may run on every host: one schedules, and another takes over when it is gone.

The holder of the lease `beat` (`core.fleet.lease`) schedules. The database has each task's last run, and a task is sent
only by the process that claimed its run there: even a suspended process that wakes up with a lost lease sends nothing
twice. While the database is unreachable nothing is scheduled: every task would need it.

A task with a question (`core.fleet.schedule.sent_if`) is sent only while it has something to do.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from datetime import datetime
from typing import Any

from celery.beat import Scheduler, SchedulingError
from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from core.fleet import lease, schedule

logger = logging.getLogger("config.beat")

_UNAVAILABLE = (DatabaseError, InterfaceError)
# What a statement may take, and how far two hosts' ideas of a second differ.
_MARGIN_SECONDS = 2.0


class LeasedScheduler(Scheduler):
    """A broker that refuses (MISCONF, OOM, READONLY) or is unreachable is logged once instead of with every task."""

    # A lease that ends is taken within this time and that of asking for it.
    max_interval = 1

    def __init__(self, *args: Any, **options: Any) -> None:
        self._holder = f"{settings.HOST_NAME} process {os.getpid()} {secrets.token_hex(4)}"
        self._ran: dict[str, datetime] = {}
        self._held_until = 0.0
        self._ask_at = 0.0
        self._answers = True
        self._sends = True
        super().__init__(*args, **options)

    @property
    def holds(self) -> bool:
        return time.monotonic() < self._held_until

    def tick(self, *args: Any, **options: Any) -> float:
        if time.monotonic() >= self._ask_at:
            self._ask()
        if not self.holds:
            return float(self.max_interval)
        return float(super().tick(*args, **options))

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        # Celery has noted in the schedule that the task runs now, and knows nothing of other hosts.
        runs_at = self.schedule[entry.name].last_run_at
        if not self._is_due(entry.task) or not self._claims(entry.name, runs_at):
            return
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            if self._sends:
                logger.warning("broker.refused error=%s", type(error.__cause__ or error.__context__ or error).__name__)
            self._sends = False
        else:
            if not self._sends:
                logger.warning("broker.recovered")
            self._sends = True

    def close(self) -> None:
        super().close()
        if self.holds:
            self._held_until = 0.0
            try:
                lease.give_back(lease.BEAT, self._holder)
            except _UNAVAILABLE as error:
                self._note(error)
        connection.close()

    def _ask(self) -> None:
        asked, held = time.monotonic(), self.holds
        self._ask_at = asked + lease.RENEW_SECONDS
        try:
            close_old_connections()
            takes = lease.take(lease.BEAT, self._holder)
            if takes and not held:
                self._take_over()
        except _UNAVAILABLE as error:
            self._note(error)
            return
        self._note(None)
        self._held_until = asked + lease.LEASE_SECONDS - _MARGIN_SECONDS if takes else 0.0
        if takes != held:
            logger.info("beat.holds host=%s" if takes else "beat.lost host=%s", settings.HOST_NAME)

    def _take_over(self) -> None:
        self._ran = schedule.last_runs()
        for name, entry in self.schedule.items():
            if name in self._ran:
                # A clock that was ahead has left runs in the future, which would keep the task from running until then.
                entry.last_run_at = min(self._ran[name], entry.default_now())
        self._heap = None

    def _is_due(self, task: str) -> bool:
        known = self.app.tasks.get(task)
        if known is None:
            return True
        try:
            close_old_connections()
            return schedule.is_due(known.run)
        except _UNAVAILABLE as error:
            self._note(error)
            return False
        except Exception:
            # The task itself fails with it, which is logged and counted; here it would end beat.
            return True

    def _claims(self, name: str, at: Any) -> bool:
        try:
            close_old_connections()
            if schedule.claim_run(name, before=self._ran.get(name), at=at):
                self._ran[name] = at
                return True
            self._take_over()
        except _UNAVAILABLE as error:
            self._note(error)
        return False

    def _note(self, error: Exception | None) -> None:
        if error is not None:
            connection.close()
            if self._answers:
                logger.warning("beat.pauses error=%s", type(error).__name__)
        elif not self._answers:
            logger.warning("beat.goes_on")
        self._answers = error is None
