"""The outcomes of single requests, in columns."""

from __future__ import annotations

from dataclasses import dataclass, fields

from benchmarks.rollouts.counting import Flags, Integers


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests in order of time: the minute within those drawn, the user, the arm, and the outcome. `failed` means an
    error of the provider, `broken` the world's fault, `left` that the client was gone, `early` that it left before any
    output. A cache `hit` has no other outcome."""

    minute: Integers
    user: Integers
    target: Flags
    hit: Flags
    failed: Flags
    broken: Flags
    left: Flags
    early: Flags

    def where(self, chosen: Flags) -> Requests:
        return Requests(*(getattr(self, field.name)[chosen] for field in fields(self)))
