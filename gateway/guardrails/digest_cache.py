"""Caches what a detector found in a text, because a conversation comes again whole with every turn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from gateway.guardrails.detectors.characters import encoded

Found = TypeVar("Found")

# Texts shorter than this are as quick to read again as to look up.
_MIN_CHARACTERS = 200
_ENTRIES = 4096


class DigestCache(Generic[Found]):
    """A detector that reads a text once. The cache keeps digests of texts and what was found in them, never a text.
    `terms` are what the detector looks for in the text, where that differs."""

    def __init__(self, detect: Callable[..., Found], *, worth: Callable[[Found], bool] = lambda _: True) -> None:
        """`worth` returns whether what was found is small enough to be kept."""
        self._detect = detect
        self._worth = worth
        self._found: dict[Hashable, Found] = {}

    def __call__(self, text: str, *terms: Hashable) -> Found:
        if len(text) < _MIN_CHARACTERS:
            return self._detect(text, *terms)
        digest = hashlib.blake2b(encoded(text), digest_size=16).digest(), terms
        try:
            return self._found[digest]
        except KeyError:
            found = self._detect(text, *terms)
        if not self._worth(found):
            return found
        if len(self._found) >= _ENTRIES:
            self._found.clear()
        self._found[digest] = found
        return found
