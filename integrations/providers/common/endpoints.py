"""Computes the address and headers once per credentials object instead of per request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from integrations.providers.base import Credentials
from integrations.providers.common.redaction import secret_values

USER_AGENT = "prompt-gateway"
_REMEMBERED = 1024

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Endpoint:
    url: str
    headers: Mapping[str, str]


class PerCredentials(Generic[Made]):
    """Caches values per credentials object. Keys are identities, since a changed integration is a new object; the cache
    holds the object, so that its id is not reused."""

    __slots__ = ("_known", "_make", "_secret_extra")

    def __init__(self, make: Callable[[Credentials], Made], *, secret_extra: tuple[str, ...] = ()) -> None:
        self._make = make
        self._secret_extra = secret_extra
        self._known: dict[int, tuple[Credentials, Made]] = {}

    def get(self, credentials: Credentials) -> Made:
        known = self._known.get(id(credentials))
        if known is not None and known[0] is credentials:
            return known[1]
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        endpoint = self._make(credentials)
        self._known[id(credentials)] = (credentials, endpoint)
        return endpoint

    def secrets(self) -> tuple[str, ...]:
        """Every secret in use; none may appear in a message to a client."""
        found = {credentials.secret for credentials, _ in self._known.values()}
        for credentials, _ in self._known.values():
            found |= secret_values(credentials)
        for name in self._secret_extra:
            found |= {credentials.extra.get(name, "") for credentials, _ in self._known.values()}
        return tuple(found - {""})
