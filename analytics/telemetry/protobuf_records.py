from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from analytics.telemetry import wire
from analytics.telemetry.errors import LargeExportError, MalformedExportError, RejectedRecord
from analytics.telemetry.origin import Seen
from analytics.telemetry.records import (
    MAX_RECORD_BYTES,
    Form,
    Located,
    Record,
    counted,
    origin_or_rejection,
    readable,
    unreadable,
)

Built = TypeVar("Built", bound=Message)

_RESOURCE_OR_SCOPE, _MEMBERS, _SCHEMA_URL = 1, 2, 3


def from_protobuf(form: Form[Record], body: bytes) -> Iterator[Located[Record]]:
    try:
        groups = wire.contents(memoryview(body)).get(1, ())
    except wire.BrokenMessageError:
        raise MalformedExportError("The body is not an OTLP export in protobuf.") from None
    count, seen = 0, Seen()
    for number, group in enumerate(groups):
        for located in _of_resource(form, number, group, seen):
            count = counted(count)
            yield located


def _of_resource(form: Form[Record], number: int, group: memoryview, seen: Seen) -> Iterator[Located[Record]]:
    parts = readable(form.resources, partial(wire.contents, group))
    if isinstance(parts, RejectedRecord):
        yield unreadable((number,), str(parts))
        return
    resource = readable("the resource", partial(_joined, Resource, parts))
    for place, scoped in enumerate(parts.get(_MEMBERS, ())):
        inner = readable(form.scopes, partial(wire.contents, scoped))
        if isinstance(inner, RejectedRecord):
            yield unreadable((number, place), str(inner))
            continue
        scope = readable("the scope", partial(_joined, InstrumentationScope, inner))
        origin = origin_or_rejection(resource, _last_text(parts), scope, _last_text(inner), seen)
        for index, content in enumerate(inner.get(_MEMBERS, ())):
            if isinstance(origin, RejectedRecord):
                yield Located((number, place, index), None, origin)
            else:
                yield Located((number, place, index), origin, _record(form, content))


def _record(form: Form[Record], content: memoryview) -> Record | RejectedRecord:
    if len(content) > MAX_RECORD_BYTES:
        return RejectedRecord(f"larger than {MAX_RECORD_BYTES} bytes")
    try:
        return form.message.FromString(bytes(content))
    except DecodeError:
        return readable("the record", partial(_with_valid_text, form.message, content))


def _with_valid_text(message: type[Built], content: memoryview) -> Built:
    # A DecodeError is mostly due to a text that is not UTF-8.
    return message.FromString(wire.with_valid_text(content, message.DESCRIPTOR))


def _joined(message: type[Built], parts: Mapping[int, list[memoryview]]) -> Built:
    found = b"".join(parts.get(_RESOURCE_OR_SCOPE, ()))
    if len(found) > MAX_RECORD_BYTES:
        raise LargeExportError(f"A resource or scope is larger than {MAX_RECORD_BYTES} bytes.")
    try:
        return message.FromString(found)
    except DecodeError:
        return _with_valid_text(message, memoryview(found))


def _last_text(parts: Mapping[int, list[memoryview]]) -> str:
    return str(parts[_SCHEMA_URL][-1], "utf-8", "replace") if _SCHEMA_URL in parts else ""
