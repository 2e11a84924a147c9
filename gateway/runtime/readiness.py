"""The readiness of a worker for traffic. `gateway/worker/state.py` keeps it up to date, so that a check costs nothing.

A store that is down does not make a worker unready: it serves without the store, as other workers would have to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from core.processes.draining import Drain

ANALYTICS_MIGRATIONS = "analytics_migrations"


@dataclass(slots=True)
class Readiness:
    drain: Drain
    has_room: Callable[[], bool]
    is_observed: bool = False  # True once the tasks run that set what follows.
    configuration_loaded: bool = False
    migrations_current: bool = False
    analytics_migrated: bool = False  # True once the analytics store has been seen with all tables of this version.
    host: dict[str, object] = field(default_factory=dict)  # `host` is the latest report of the host's monitor.

    def checks(self) -> dict[str, bool]:
        return {
            "configuration": self.configuration_loaded,
            "migrations": self.migrations_current,
            "recording": self.has_room(),
            "draining": not self.drain.is_on,
        }

    def pending(self) -> list[str]:
        """Returns what is not there yet and keeps no traffic away: a worker serves and records without it."""
        return [] if self.analytics_migrated else [ANALYTICS_MIGRATIONS]
