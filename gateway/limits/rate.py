"""How fast requests to the same limits follow each other."""

from __future__ import annotations

from gateway.limits.claims import Claim

# The rate is measured over this time, a little less than the one after which a settlement is sent by itself.
_WINDOW_SECONDS = 0.045
# A subject with fewer requests ahead asks for each of them.
_LEAST = 2
_MOST = 512


class Rate:
    """How many requests a subject had in the latest window, and how large they were. `ahead` is the number that it will
    have within the horizon, 0 where they are few (`is_low`)."""

    __slots__ = ("_cost", "_requests", "_since", "_tokens", "ahead", "cost_each", "is_low", "tokens_each")

    def __init__(self, now: float) -> None:
        self.ahead = self.tokens_each = self.cost_each = 0
        self.is_low = False
        self._since = now
        self._requests = self._tokens = self._cost = 0

    def add(self, claim: Claim) -> None:
        self._requests += 1
        self._tokens += claim.tokens
        self._cost += claim.cost

    def measure(self, now: float, horizon: float) -> None:
        seconds = now - self._since
        if seconds <= _WINDOW_SECONDS:
            return
        requests = self._requests
        ahead = min(int(requests * horizon / seconds), _MOST)
        self.is_low = ahead < _LEAST
        self.ahead = 0 if self.is_low else ahead
        if requests:
            self.tokens_each, self.cost_each = -(-self._tokens // requests), -(-self._cost // requests)
        self._since = now
        self._requests = self._tokens = self._cost = 0
