from __future__ import annotations

import time
from dataclasses import dataclass, replace

from django.conf import settings

from integrations.transport.base import Timeouts


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Time limits in seconds.

    `body` bounds the sending of a request by its client. `ttft` runs from the call of a provider to the first output of
    its stream, `total` from the arrival of a request to its end, with all attempts and the whole stream.
    """

    timeouts: Timeouts
    body: float
    ttft: float
    total: float

    @classmethod
    def from_settings(cls) -> Deadlines:
        return cls(
            timeouts=Timeouts(
                connect=settings.UPSTREAM_CONNECT_SECONDS,
                first_byte=settings.UPSTREAM_FIRST_BYTE_SECONDS,
                idle=settings.UPSTREAM_IDLE_SECONDS,
            ),
            body=settings.GATEWAY_BODY_SECONDS,
            ttft=settings.UPSTREAM_TTFT_SECONDS,
            total=settings.UPSTREAM_TOTAL_SECONDS,
        )

    def left(self, started: float) -> float:
        return self.total - (time.perf_counter() - started)

    def cut_short(self, started: float, took: float) -> bool:
        """True if a call of `took` seconds had less time than others, because its request's time was nearly up."""
        left = self.left(started)
        return left <= 0 and left + took < min(max(self.timeouts.first_byte, self.ttft), self.total / 2)

    def within(self, seconds: float) -> Timeouts:
        limits = self.timeouts
        if seconds >= limits.first_byte and seconds >= limits.idle:
            return limits
        seconds = max(seconds, 0.0)
        return replace(
            limits,
            connect=min(limits.connect, seconds),
            first_byte=min(limits.first_byte, seconds),
            idle=min(limits.idle, seconds),
        )
