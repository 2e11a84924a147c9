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
    for name, found in _looked_at(with_embedded=False):
        yield from (Problem("redis", f"{name}: {fault.message}") for fault in found.faults if fault.is_lasting)


def _looked_at(*, with_embedded: bool = True) -> Iterator[tuple[str, Found]]:
    is_shared = settings.BROKER_REDIS_URL == settings.REDIS_URL
    if with_embedded or not settings.REDIS_IS_EMBEDDED:
        yield "REDIS_URL", look_at(settings.REDIS_URL, is_broker=is_shared)
    if not is_shared:
        yield "CELERY_BROKER_URL", look_at(settings.BROKER_REDIS_URL, is_broker=True, is_limiter=False)
