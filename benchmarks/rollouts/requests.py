from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.rollouts.counting import Flags, Floats, Integers
from rollouts.evaluation import Metric


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests in order of time: the minute within those drawn, the user, the arm, and the outcome.

    `failed` means an error of the provider, `broken` the world's fault, `left` that the client was gone, `early` that
    it left before any output, `refused` that a budget or a limit of tokens was used up. A cache `hit` and a request
    that is `limited`, above a rate limit, have no other outcome. `elsewhere` means that the answer was in the other
    arm's cache. `latency` and `cost` are those of an answer, `signals` what is wrong with it, and `read` means that the
    provider found its prompt in a cache.
    """

    minute: Integers
    user: Integers
    target: Flags
    failed: Flags
    broken: Flags
    left: Flags
    early: Flags
    refused: Flags
    hit: Flags
    elsewhere: Flags
    limited: Flags
    latency: Floats | None
    cost: Floats | None
    signals: Mapping[Metric, Flags]
    read: Flags

    def where(self, chosen: Flags) -> Requests:
        return Requests(
            self.minute[chosen],
            self.user[chosen],
            self.target[chosen],
            self.failed[chosen],
            self.broken[chosen],
            self.left[chosen],
            self.early[chosen],
            self.refused[chosen],
            self.hit[chosen],
            self.elsewhere[chosen],
            self.limited[chosen],
            None if self.latency is None else self.latency[chosen],
            None if self.cost is None else self.cost[chosen],
            {metric: flags[chosen] for metric, flags in self.signals.items()},
            self.read[chosen],
        )
