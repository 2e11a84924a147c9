"""Whether this worker should get traffic. What it knows is kept by `gateway.worker_state`; asking costs nothing.

Stores that are away are no reason to send traffic elsewhere: the worker serves without them, and so would the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from core.draining import Drain


@dataclass(slots=True)
class Readiness:
    """`has_room` tells whether a record that came now would be kept."""

    drain: Drain
    has_room: Callable[[], bool]
    configuration_loaded: bool = False
    migrations_current: bool = False
    host: dict[str, object] = field(default_factory=dict)  # what the host's monitor said last

    def checks(self) -> dict[str, bool]:
        """Whether each holds; traffic should come when all do."""
        return {
            "configuration": self.configuration_loaded,
            "migrations": self.migrations_current,
            "recording": self.has_room(),
            "draining": not self.drain.is_on,
        }
