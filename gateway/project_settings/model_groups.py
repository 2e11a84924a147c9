"""Model groups as requests use them: a name of the project's own that stands for several models."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.rendezvous import ranked


class Strategy(StrEnum):
    """The order in which a group puts its models: as they are listed, or by chance in proportion to their weights."""

    ORDERED = "ordered"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """A group. `weights` maps its models, in the order of the list."""

    name: str
    strategy: Strategy
    weights: Mapping[str, int]

    def models(self, session_id: str) -> Sequence[str]:
        """Returns the models in the order in which a request of the session tries them. Every request of a session gets
        the same order, and one without a session an order of its own."""
        if self.strategy is Strategy.ORDERED:
            return list(self.weights)
        # Ruff wants a cryptographic generator: the draw spreads load and protects no secret.
        return ranked(session_id or str(random.random()), self.weights)  # noqa: S311
