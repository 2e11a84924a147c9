"""The opaque cursors of lists of requests: places in a list as text."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from decimal import Decimal
from uuid import UUID

import msgspec
from rest_framework import serializers

from analytics.queries.request_sorting import Position, RequestSort

MAX_CURSOR_CHARACTERS = 300


class _Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    sort: RequestSort
    value: Decimal
    ts: datetime
    request_id: UUID
    backward: bool


def encode_cursor(sort: RequestSort, position: Position) -> str:
    cursor = _Cursor(sort, position.value, position.ts, position.request_id, position.backward)
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def decode_cursor(text: str, sort: RequestSort) -> Position:
    """Returns the place that a cursor stands for. Raises DRF's ValidationError for a text that is no cursor of a list
    in this order."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        cursor = msgspec.msgpack.decode(raw, type=_Cursor)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise serializers.ValidationError({"cursor": "Must be the cursor of a link of this list."}) from None
    if cursor.sort is not sort:
        raise serializers.ValidationError({"cursor": "Is of a list in another order: leave it out for the first page."})
    if not _is_in_range(cursor):
        raise serializers.ValidationError({"cursor": "Must be the cursor of a link of this list."})
    return Position(cursor.value, cursor.ts, cursor.request_id, cursor.backward)


def _is_in_range(cursor: _Cursor) -> bool:
    """Returns whether the values of a cursor fit the types of their columns."""
    return (
        cursor.value.is_finite()
        and 0 <= cursor.value < 2**32
        and cursor.ts.tzinfo is not None
        and 1970 <= cursor.ts.year < 2200
    )
