"""Whether a request wants to be answered from the cache, and how old the answer may be."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

MAX_SECONDS = 30 * 86_400
# Clients choose what is remembered.
_MAX_CHARACTERS = 200
_MAX_AGE = re.compile(r"max-age=\"?([0-9]{1,18})\"?\Z")


class CachePolicy(msgspec.Struct, frozen=True):
    """Seconds. `max_age` 0: nothing kept will do. `ttl` 0: the answer is not kept."""

    max_age: int
    ttl: int


NO_CACHE = CachePolicy(0, 0)


def cache_policy(cache_control: str, project_ttl: int) -> CachePolicy:
    """What the header `Cache-Control` (RFC 9111, 5.2.1) and the project's `cache_ttl_seconds` ask for together.

    `max-age=N` asks for an answer of at most N seconds and keeps it as long, or as long as the project keeps answers;
    `no-cache` asks for a new one, `no-store` for a new one that is not kept. What cannot be read asks for nothing.
    """
    return _read(cache_control, project_ttl) if len(cache_control) <= _MAX_CHARACTERS else NO_CACHE


@lru_cache(maxsize=1024)
def _read(cache_control: str, project_ttl: int) -> CachePolicy:
    if not cache_control:
        return CachePolicy(project_ttl, project_ttl) if project_ttl else NO_CACHE
    directives = {word.strip().lower() for word in cache_control.split(",")}
    if "no-store" in directives:
        return NO_CACHE
    ages = [int(found[1]) for word in directives if (found := _MAX_AGE.match(word))]
    if "no-cache" in directives:
        return CachePolicy(0, project_ttl) if project_ttl else NO_CACHE
    if not ages:
        return CachePolicy(project_ttl, project_ttl) if project_ttl else NO_CACHE
    age = min(*ages, MAX_SECONDS)
    ttl = max(age, project_ttl)
    return CachePolicy(age, ttl) if ttl else NO_CACHE
