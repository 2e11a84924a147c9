"""Latencies as counts in log-spaced buckets: a latency that is read back differs from the measured one by at most 5 %.

The bounds are those of DDSketch (https://arxiv.org/abs/1908.10693, section 2.1): bucket i holds the values above
`growth ** (i - 1)` and up to `growth ** i`, and represents the one value with the smallest relative distance to both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log

RELATIVE_ERROR = 0.05
MIN_MS = 0.1
MAX_MS = 3_600_000.0

_GROWTH = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_SCALE = 1 / log(_GROWTH)

LAST_BUCKET = ceil(log(MAX_MS / MIN_MS) * _SCALE)
_VALUES = tuple(MIN_MS * 2 * _GROWTH**bucket / (_GROWTH + 1) for bucket in range(LAST_BUCKET + 1))


def bucket_of(latency_ms: float) -> int:
    """Latencies from 0.1 ms to one hour have buckets of their own; a latency outside counts in the nearest one."""
    if latency_ms >= MAX_MS:
        return LAST_BUCKET
    # The comparison is negated so that NaN takes the first branch too.
    if not latency_ms > MIN_MS:
        return 0
    return ceil(log(latency_ms / MIN_MS) * _SCALE)


def quantiles(buckets: Mapping[int, int], shares: Sequence[float]) -> list[float]:
    """Returns the latency in ms at each of the ascending `shares` (0 to 1), by nearest rank; `buckets` must not be
    empty."""
    total = sum(buckets.values())
    ranks = [max(1, ceil(share * total)) for share in shares]
    found: list[float] = []
    passed = 0
    for bucket in sorted(buckets):
        passed += buckets[bucket]
        while len(found) < len(ranks) and ranks[len(found)] <= passed:
            found.append(_VALUES[bucket])
    return found
