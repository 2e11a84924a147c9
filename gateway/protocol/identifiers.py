"""Request ids: UUIDv7 (RFC 9562), so that they sort by time."""

from __future__ import annotations

import os
import random
import time

_random = random.Random(os.urandom(32))  # noqa: S311 - ids are unique, not secret; os.urandom per request costs more


def reseed() -> None:
    """Seeds the generator anew after a fork, so that two processes do not draw the same ids."""
    _random.seed(os.urandom(32))


os.register_at_fork(after_in_child=reseed)


def new_request_id() -> str:
    value = (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | _random.getrandbits(76)
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
