"""Formats OTLP's values as the texts of the tables, as the collector does, and finds the sessions that they name."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


def other_session_ids(attributes: Mapping[str, str]) -> list[str]:
    """Returns the values of the attributes that the operator configured (OTLP_SESSION_ATTRIBUTES)."""
    return [value for name in settings.OTLP_SESSION_ATTRIBUTES if (value := attributes.get(name))]


def attributes(pairs: Iterable[KeyValue]) -> dict[str, str]:
    return {pair.key: text(pair.value) for pair in pairs}


def text(value: AnyValue) -> str:
    """Lists and maps become JSON, bytes base64, a missing value ""."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind == "double_value":
        return _number(value.double_value)
    if kind is None:
        return ""
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _plain(pair.value) for pair in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind == "double_value":
        # JSON has no numbers for NaN and the infinities, so they become texts.
        return value.double_value if math.isfinite(value.double_value) else _number(value.double_value)
    return None if kind is None else getattr(value, kind)


def _number(value: float) -> str:
    """Formats a number as JavaScript and the collector do: `1` for 1.0."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
