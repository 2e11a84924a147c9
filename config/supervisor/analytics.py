"""Migrates the analytics store in the background: the gateway serves meanwhile, and its records wait in the spool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from analytics.clickhouse import migrator
from analytics.errors import AnalyticsSchemaError
from config.supervisor import schema
from config.supervisor.background_thread import in_background
from core.errors import ApplicationError
from core.processes.monitoring import Alarm, Found, Subject

logger = logging.getLogger("config.supervisor")

_FIRST_PAUSE_SECONDS = 0.5
_MAX_PAUSE_SECONDS = 10.0
_ALARM_SECONDS = 30.0
# An engine that needs longer than this to start keeps no gateway from serving; its store is then looked at later.
_LOOK_SECONDS = 20.0
# A store of a version that this one cannot upgrade, and an address that cannot be one: no wait heals these.
_HOPELESS = (AnalyticsSchemaError, ImproperlyConfigured)


class AnalyticsPreparation:
    def __init__(self, *, migrate: bool) -> None:
        self._work = migrator.migrate if migrate else schema.check_analytics
        # Why the latest attempt failed; empty before the first failure, and once the tables are there.
        self._problem = ""

    async def look(self, engines: Iterable[asyncio.Future[None]]) -> None:
        """Refuses an unfit store before the SQL database is changed. Raises CommandError. A store that does not answer
        is checked once it does."""
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await asyncio.gather(*(asyncio.shield(started) for started in engines))
                await in_background(migrator.look)
        except _HOPELESS as error:
            raise CommandError(str(error)) from error
        except TimeoutError:
            logger.warning("analytics.not_looked_at seconds=%g", _LOOK_SECONDS)
        except Exception as error:
            self._note(error)

    async def prepare(self) -> None:
        """Returns once the store has this version's tables. Raises CommandError if waiting cannot make it fit."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                await in_background(self._work)
            except _HOPELESS as error:
                raise CommandError(str(error)) from error
            except Exception as error:
                self._note(error)
            else:
                break
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)
        self._problem = ""
        logger.info("analytics.prepared")

    def subject(self) -> Subject:
        return Subject("preparation", self._state, 5.0, alarms=_alarms)

    def _state(self) -> dict[str, Any]:
        return {"problem": self._problem}

    def _note(self, error: Exception) -> None:
        is_foreseen = isinstance(error, (ApplicationError, CommandError))
        problem = str(error) if is_foreseen else type(error).__name__
        if problem != self._problem:
            logger.warning("analytics.not_prepared problem=%r", problem, exc_info=None if is_foreseen else error)
        self._problem = problem


def _alarms(found: Found) -> Iterable[Alarm]:
    if found["problem"]:
        text = f"The analytics store does not have the tables of this version yet: {found['problem']}"
        yield Alarm("migrations_missing", text, "analytics", after=_ALARM_SECONDS, is_shared=True)
