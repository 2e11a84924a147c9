"""The records of an export one by one, from protobuf or JSON, each with its origin. They become the same messages.

All signals are built alike: resources hold scopes, scopes hold records. In protobuf the fields also have the same
numbers (`opentelemetry/proto/*/v1/*.proto`), which is why a logs payload decodes as spans without spans' ids.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from analytics.telemetry import wire
from analytics.telemetry.errors import LargeExportError, MalformedExportError, RejectedRecord
from analytics.telemetry.origin import Origin, Seen, origin_of

Record = TypeVar("Record", bound=Message)
Built = TypeVar("Built", bound=Message)
Located = tuple[Origin, Record | RejectedRecord]

_RESOURCE_OR_SCOPE, _MEMBERS, _SCHEMA_URL = 1, 2, 3
# Per export: exporters send 512 at once, collectors 8192.
MOST_RECORDS = 50_000
# What one record may take in protobuf: in memory it takes a hundred times as much when made of empty values.
MOST_RECORD_BYTES = 4 * 1024 * 1024
# Python's objects for them take up to a hundred bytes each, whatever little they hold.
MOST_JSON_VALUES = 4_000_000

# What protobuf's JSON reader raises for values of another kind than the field's.
_UNREADABLE = (ParseError, TypeError, ValueError, AttributeError, KeyError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class Form(Generic[Record]):
    """How a signal's records are written. `ids` are the JSON names of fields that hold hexadecimal text there."""

    message: type[Record]
    resources: str
    scopes: str
    records: str
    ids: tuple[str, ...] = ()


def from_protobuf(form: Form[Record], body: bytes) -> Iterator[Located[Record]]:
    """Raises MalformedExportError, LargeExportError."""
    count, seen = 0, Seen()
    try:
        for group in wire.contents(memoryview(body)).get(1, ()):
            parts = wire.contents(group)
            # A message that occurs twice is merged, and so are its bytes.
            resource = _parsed(Resource, b"".join(parts.get(_RESOURCE_OR_SCOPE, ())))
            for scoped in parts.get(_MEMBERS, ()):
                inner = wire.contents(scoped)
                scope = _parsed(InstrumentationScope, b"".join(inner.get(_RESOURCE_OR_SCOPE, ())))
                origin = origin_of(resource, _last_text(parts), scope, _last_text(inner), seen)
                for content in inner.get(_MEMBERS, ()):
                    count = _counted(count)
                    yield origin, _record(form, content)
    except (wire.BrokenMessageError, DecodeError):
        raise MalformedExportError("The body is not an OTLP export in protobuf.") from None


def from_json(
    form: Form[Record], body: bytes, *, refuse_others: Callable[[Mapping[str, Any]], None]
) -> Iterator[Located[Record]]:
    """Raises MalformedExportError naming the field, LargeExportError, and what `refuse_others` does of the document."""
    count, seen = 0, Seen()
    document = _document(body)
    refuse_others(document)
    for group in _members(document, form.resources):
        resource = _built(Resource, group.get("resource") or {}, f"{form.resources}.resource")
        for scoped in _members(group, form.scopes):
            scope = _built(InstrumentationScope, scoped.get("scope") or {}, f"{form.scopes}.scope")
            origin = origin_of(resource, _text(group, "schemaUrl"), scope, _text(scoped, "schemaUrl"), seen)
            for written in _listed(scoped, form.records):
                count = _counted(count)
                yield origin, _json_record(form, written)


def _counted(count: int) -> int:
    if count >= MOST_RECORDS:
        raise LargeExportError(f"An export holds at most {MOST_RECORDS} records. Send smaller batches.")
    return count + 1


def _record(form: Form[Record], content: memoryview) -> Record | RejectedRecord:
    if len(content) > MOST_RECORD_BYTES:
        return RejectedRecord(f"larger than {MOST_RECORD_BYTES} bytes")
    try:
        return _parsed(form.message, content)
    except (wire.BrokenMessageError, DecodeError):
        return RejectedRecord("not readable")


def _parsed(message: type[Built], content: bytes | memoryview) -> Built:
    try:
        return message.FromString(bytes(content))
    except DecodeError:
        # The usual reason is a text that is no UTF-8.
        return message.FromString(wire.with_valid_text(memoryview(content), message.DESCRIPTOR))


def _last_text(parts: Mapping[int, list[memoryview]]) -> str:
    return str(parts[_SCHEMA_URL][-1], "utf-8", "replace") if _SCHEMA_URL in parts else ""


def _document(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    if sum(map(body.count, (b"{", b"[", b","))) > MOST_JSON_VALUES:
        raise LargeExportError(
            f"The body holds more than {MOST_JSON_VALUES} values. Send smaller batches, or protobuf."
        )
    try:
        document = json.loads(body.decode("utf-8", "replace"))
        if b"\\u" in body:
            # Half a surrogate pair has no place in any database.
            document = json.loads(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise MalformedExportError("The body is not JSON.") from None
    if not isinstance(document, dict):
        raise MalformedExportError("The body must be a JSON object.")
    return document


def _listed(holder: Mapping[str, Any], name: str) -> list[Any]:
    found = holder.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise MalformedExportError(f"{name}: must be a list.")
    return found


def _members(holder: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    for item in _listed(holder, name):
        if not isinstance(item, dict):
            raise MalformedExportError(f"{name}: must be a list of objects.")
        yield item


def _text(holder: Mapping[str, Any], name: str) -> str:
    found = holder.get(name)
    return found if isinstance(found, str) else ""


def _built(message: type[Built], written: Any, name: str) -> Built:
    built = message()
    try:
        ParseDict(written, built, ignore_unknown_fields=True)
    except _UNREADABLE:
        raise MalformedExportError(f"{name}: not readable.") from None
    return built


def _json_record(form: Form[Record], written: Any) -> Record | RejectedRecord:
    if not isinstance(written, dict):
        return RejectedRecord("not an object")
    record = form.message()
    try:
        ParseDict(_with_base64_ids(written, form.ids), record, ignore_unknown_fields=True)
    except RejectedRecord as rejection:
        return rejection
    except _UNREADABLE:
        return RejectedRecord("not readable")
    return record


def _with_base64_ids(written: Mapping[str, Any], ids: tuple[str, ...]) -> dict[str, Any]:
    """OTLP writes ids in hexadecimal, where protobuf's own JSON has base64."""
    changed = dict(written)
    for name in ids:
        if changed.get(name) is not None:
            changed[name] = _base64_of_hex(name, changed[name])
    links = changed.get("links")
    if isinstance(links, list):
        changed["links"] = [_with_base64_ids(link, ids) if isinstance(link, dict) else link for link in links]
    return changed


def _base64_of_hex(name: str, value: Any) -> str:
    try:
        return base64.b64encode(bytes.fromhex(value)).decode()
    except (TypeError, ValueError):
        raise RejectedRecord(f"{name} is not hexadecimal") from None
