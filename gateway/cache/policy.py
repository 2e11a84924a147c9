from __future__ import annotations

import re
from functools import lru_cache

import msgspec

MAX_SECONDS = 30 * 86_400
# Clients choose these values, so only short ones are kept in the lookup cache.
_MAX_CHARACTERS = 200
_MAX_AGE = re.compile(r"max-age=\"?([0-9]{1,18})\"?\Z")


class CachePolicy(msgspec.Struct, frozen=True):
    """In seconds. With `max_age` 0 no stored answer is used; with `ttl` 0 none is stored."""

    max_age: int
    ttl: int


NO_CACHE = CachePolicy(0, 0)


def cache_policy(cache_control: str, project_ttl: int) -> CachePolicy:
    """Combines the header `Cache-Control` (RFC 9111, 5.2.1) with the project's `cache_ttl_seconds`.

    `max-age=N` accepts an answer of at most N seconds, and stores the answer for N seconds or the project's time,
    whichever is longer. `no-cache` requires a new answer; `no-store` also does not store it. An unreadable header turns
    the cache off.
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
