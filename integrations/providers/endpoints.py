"""Where requests with the same credentials go: made once, not per request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from integrations.providers.base import Credentials

USER_AGENT = "prompt-gateway"
_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    url: str
    headers: Mapping[str, str]


class PerCredentials:
    """What is the same for every request with the same credentials, made once.

    Keyed by identity: a changed integration is a new object. Holding the object keeps its id from being reused.
    """

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[Credentials], Endpoint]) -> None:
        self._make = make
        self._known: dict[int, tuple[Credentials, Endpoint]] = {}

    def get(self, credentials: Credentials) -> Endpoint:
        known = self._known.get(id(credentials))
        if known is not None and known[0] is credentials:
            return known[1]
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        endpoint = self._make(credentials)
        self._known[id(credentials)] = (credentials, endpoint)
        return endpoint

    def secrets(self) -> tuple[str, ...]:
        """Every secret in use: what no message to a client may hold."""
        return tuple({credentials.secret for credentials, _ in self._known.values() if credentials.secret})
