from __future__ import annotations

from gateway.limits.claims import Claim

# The rate is measured over this time, a little less than the one after which a settlement is sent by itself. Over
# a few requests it would be chance, so where they come slowly it is measured over a longer time.
_WINDOW_SECONDS = 0.045
_LONGEST = 5
_ENOUGH = 32
# A subject with fewer requests ahead asks for each of them.
_LEAST = 2
_MOST = 512


class Rate:
    """The number and size of a subject's requests in the latest window.

    `ahead` is the number to lease for: the requests within the horizon or, if these are few, within five times of it,
    up to twice `_ENOUGH`; 0 if they come too slowly for that (`is_low`). `patience` is how many times longer than the
    horizon that is. A command may wait as much longer, so that it concerns half of what was leased.
    """

    __slots__ = ("_cost", "_requests", "_since", "_tokens", "ahead", "cost_each", "is_low", "patience", "tokens_each")

    def __init__(self, now: float) -> None:
        self.ahead = self.tokens_each = self.cost_each = 0
        self.is_low = False
        self.patience = 1.0
        self._since = now
        self._requests = self._tokens = self._cost = 0

    def add(self, claim: Claim) -> None:
        self._requests += 1
        self._tokens += claim.tokens
        self._cost += claim.cost

    def remove(self, claim: Claim) -> None:
        self._requests -= 1
        self._tokens -= claim.tokens
        self._cost -= claim.cost

    def measure(self, now: float, horizon: float) -> None:
        requests, seconds = self._requests, now - self._since
        if seconds <= _WINDOW_SECONDS or (requests < _ENOUGH and seconds < _LONGEST * _WINDOW_SECONDS):
            return
        in_horizon = requests * horizon / seconds
        self.is_low = in_horizon < _LEAST
        ahead = max(in_horizon, min(2 * _ENOUGH, _LONGEST * in_horizon))
        self.ahead = 0 if self.is_low else min(int(ahead), _MOST)
        self.patience = 1.0 if self.is_low else ahead / in_horizon
        if requests:
            self.tokens_each, self.cost_each = -(-self._tokens // requests), -(-self._cost // requests)
        self._since = now
        self._requests = self._tokens = self._cost = 0
