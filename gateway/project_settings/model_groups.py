from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.rendezvous import ranked


class Strategy(StrEnum):
    """The order of a group's models: as listed, or random in proportion to their weights."""

    ORDERED = "ordered"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """`weights` maps the group's models, in the order of the list."""

    name: str
    strategy: Strategy
    weights: Mapping[str, int]

    def models(self, session_id: str) -> Sequence[str]:
        """Returns the models in the order in which a request tries them.

        All requests of a session get the same order; one without a session gets an order of its own.
        """
        if self.strategy is Strategy.ORDERED:
            return list(self.weights)
        # Ruff wants a cryptographic generator: the draw spreads load and protects no secret.
        return ranked(session_id or str(random.random()), self.weights)  # noqa: S311
