"""Every Redis of this host: what kind of server it is, its user, its clock, and whether it keeps what it is given."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings

from config.deployment.problem import Problem, skew
from core.redis.checks import Found, look_at


def check() -> Iterator[Problem]:
    for name, found in _looked_at():
        for fault in found.faults:
            yield Problem("redis", f"{name}: {fault.message}")
        if found.clock is not None:
            yield from skew("redis", found.clock)


def refuse() -> Iterator[Problem]:
    """Yields why limits or counts would be wrong, or tasks would not run, however long one waits."""
    for name, found in _looked_at(with_embedded=False):
        yield from (Problem("redis", f"{name}: {fault.message}") for fault in found.faults if fault.is_lasting)


def _looked_at(*, with_embedded: bool = True) -> Iterator[tuple[str, Found]]:
    """Yields what is found by each variable that names a Redis."""
    is_shared = settings.BROKER_REDIS_URL == settings.REDIS_URL
    if with_embedded or not settings.REDIS_IS_EMBEDDED:
        yield "REDIS_URL", look_at(settings.REDIS_URL, is_broker=is_shared)
    if not is_shared:
        yield "CELERY_BROKER_URL", look_at(settings.BROKER_REDIS_URL, is_broker=True, is_limiter=False)
