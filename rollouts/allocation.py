"""The allocation of requests to the arms of a rollout. Pure.

The unit is a user, a session or a request. Its number is the first 8 bytes of SHA-256("<rollout id>:<kind>:<unit>"),
big-endian; its bucket is that number modulo 10,000. It is in the target arm if the bucket is below 100 times the
weight.

The rollout's id is the salt: a unit keeps its bucket through all stages, so a rising weight only adds units, and two
rollouts draw independently.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

BUCKETS = 10_000
_BUCKETS_PER_PERCENT = BUCKETS // 100


class AllocationType(StrEnum):
    RANDOM = "random"
    USER_STICKY = "user_sticky"
    SESSION_STICKY = "session_sticky"


class Variant(StrEnum):
    TARGET = "target"
    BASELINE = "baseline"


class UnitKind(StrEnum):
    USER = "user"
    SESSION = "session"
    REQUEST = "request"


class Allocation(NamedTuple):
    """`unit` is the unit's 64-bit number, which records keep; `fallback` is true if the configured kind of unit was
    missing."""

    variant: Variant
    unit: int
    kind: UnitKind
    fallback: bool


def variant_of(
    rollout_id: str,
    allocation_type: AllocationType,
    weight: int,
    *,
    user_id: str,
    session_id: str,
    request_id: str,
) -> Allocation:
    """Returns a request's arm at `weight` percent, 0 to 100. `rollout_id` is the UUID in its canonical text form.

    A request without the rollout's kind of unit is allocated by the next one: user, session, request.
    """
    if allocation_type is AllocationType.USER_STICKY and user_id:
        kind, value, fallback = UnitKind.USER, user_id, False
    elif allocation_type is not AllocationType.RANDOM and session_id:
        kind, value, fallback = UnitKind.SESSION, session_id, allocation_type is AllocationType.USER_STICKY
    else:
        kind, value, fallback = UnitKind.REQUEST, request_id, allocation_type is not AllocationType.RANDOM
    unit = unit_number(rollout_id, kind, value)
    return Allocation(variant_at(unit, weight), unit, kind, fallback)


def unit_number(rollout_id: str, kind: UnitKind, value: str) -> int:
    # An id that is not valid Unicode is stored with replacement characters, so those are hashed.
    return int.from_bytes(sha256(f"{rollout_id}:{kind}:{value}".encode(errors="replace")).digest()[:8], "big")


def variant_at(unit: int, weight: int) -> Variant:
    return Variant.TARGET if unit % BUCKETS < weight * _BUCKETS_PER_PERCENT else Variant.BASELINE
