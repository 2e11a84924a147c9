"""The readiness of a worker for traffic, kept up to date by `gateway/worker/state.py`, so that a check costs nothing.

Stores that are away do not make a worker unready: it serves without them, and other workers would have to as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from core.processes.draining import Drain

ANALYTICS_MIGRATIONS = "analytics_migrations"


@dataclass(slots=True)
class Readiness:
    """The checks of one worker. `has_room` returns True if the spool would keep a record that came now."""

    drain: Drain
    has_room: Callable[[], bool]
    is_observed: bool = False  # True once the tasks run that set what follows.
    configuration_loaded: bool = False
    migrations_current: bool = False
    analytics_migrated: bool = False  # True once the analytics store has been seen with all tables of this version.
    host: dict[str, object] = field(default_factory=dict)  # `host` is the latest report of the host's monitor.

    def checks(self) -> dict[str, bool]:
        """Returns each check by name, True if it holds; a worker is ready when all hold."""
        return {
            "configuration": self.configuration_loaded,
            "migrations": self.migrations_current,
            "recording": self.has_room(),
            "draining": not self.drain.is_on,
        }

    def pending(self) -> list[str]:
        """Returns what is not there yet and keeps no traffic away: a worker serves and records without it."""
        return [] if self.analytics_migrated else [ANALYTICS_MIGRATIONS]
