from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock

MAX_BEGUN = 30
WINDOW_SECONDS = 60
_MAX_ADDRESSES = 10_000

# By address: when its window began, and the sign-ins begun in it; of this worker alone.
_begun: OrderedDict[str, tuple[float, int]] = OrderedDict()
_lock = Lock()


def may_begin(address: str) -> bool:
    """Counts a sign-in; returns whether the address stays within MAX_BEGUN in its window."""
    now = time.monotonic()
    with _lock:
        since, count = _begun.pop(address, (now, 0))
        if now - since >= WINDOW_SECONDS:
            since, count = now, 0
        _begun[address] = since, count + 1
        while len(_begun) > _MAX_ADDRESSES:
            _begun.popitem(last=False)
    return count < MAX_BEGUN
