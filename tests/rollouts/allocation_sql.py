"""The allocation of requests to arms once more, as expressions of ClickHouse over the request log."""

from __future__ import annotations

from rollouts.allocation import BUCKETS, AllocationType, UnitKind

_ID_COLUMNS = {UnitKind.USER: "user_id", UnitKind.SESSION: "session_id", UnitKind.REQUEST: "toString(request_id)"}


def unit_sql(allocation_type: AllocationType) -> str:
    """Returns a ClickHouse expression for the unit's number.

    It works on the request log's columns `rollout_id` (UUID), `user_id`, `session_id` (String) and `request_id`
    (UUID), and equals `alloc_unit` of an honest row.
    """
    by_request = _number_sql(UnitKind.REQUEST)
    if allocation_type is AllocationType.RANDOM:
        return by_request
    by_session = f"if(session_id != '', {_number_sql(UnitKind.SESSION)}, {by_request})"
    if allocation_type is AllocationType.SESSION_STICKY:
        return by_session
    return f"if(user_id != '', {_number_sql(UnitKind.USER)}, {by_session})"


def target_sql(unit: str, weight: str) -> str:
    """Returns a ClickHouse condition: the unit is in the target arm. Takes expressions of its number and the weight."""
    return f"({unit}) % {BUCKETS} < ({weight}) * {BUCKETS // 100}"


def _number_sql(kind: UnitKind) -> str:
    text = f"concat(toString(rollout_id), ':{kind.value}:', {_ID_COLUMNS[kind]})"
    # reinterpretAsUInt64 reads little-endian; the number is big-endian.
    return f"reinterpretAsUInt64(reverse(substring(SHA256({text}), 1, 8)))"
