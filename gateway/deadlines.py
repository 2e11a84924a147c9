"""How long a request may take, and each call of a provider within it. Read from the settings once a worker."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from django.conf import settings

from integrations.transport.base import Timeouts


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds. `body` is how long a client may take to send its request, `ttft` runs from the call of a provider to the
    first output of its stream, `total` from the arrival of a request to its end, all attempts and the whole stream
    included."""

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
        """Of a request that arrived at `started` (`perf_counter`)."""
        return self.total - (time.perf_counter() - started)

    def cut_short(self, started: float, took: float) -> bool:
        """Whether a call that ended just now after `took` seconds had less time than others, because the request's was
        nearly up when it began."""
        left = self.left(started)
        return left <= 0 and left + took < min(max(self.timeouts.first_byte, self.ttft), self.total / 2)

    def within(self, seconds: float) -> Timeouts:
        """The phases' own limits, none longer than `seconds`."""
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
