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

import msgspec
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
# JSON says the same in more bytes.
MOST_JSON_RECORD_BYTES = 2 * MOST_RECORD_BYTES

# What lies deeper is looked at when it is its turn: a document of many megabytes is never one object of many more.
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_objects = msgspec.json.Decoder(list[dict[str, msgspec.Raw]] | None)
_items = msgspec.json.Decoder(list[msgspec.Raw] | None)
_NULL = msgspec.Raw(b"null")

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
            resource = _parsed(Resource, _joined(parts))
            for scoped in parts.get(_MEMBERS, ()):
                inner = wire.contents(scoped)
                scope = _parsed(InstrumentationScope, _joined(inner))
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
        resource = _built(Resource, group.get("resource", _NULL), f"{form.resources}.resource")
        for scoped in _members(group, form.scopes):
            scope = _built(InstrumentationScope, scoped.get("scope", _NULL), f"{form.scopes}.scope")
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


def _joined(parts: Mapping[int, list[memoryview]]) -> bytes:
    """Of a resource or scope. A message that occurs twice is merged, and so are its bytes."""
    found = b"".join(parts.get(_RESOURCE_OR_SCOPE, ()))
    if len(found) > MOST_RECORD_BYTES:
        raise LargeExportError(f"A resource or scope is larger than {MOST_RECORD_BYTES} bytes.")
    return found


def _last_text(parts: Mapping[int, list[memoryview]]) -> str:
    return str(parts[_SCHEMA_URL][-1], "utf-8", "replace") if _SCHEMA_URL in parts else ""


def _document(body: bytes) -> dict[str, msgspec.Raw]:
    if not body.strip():
        return {}
    try:
        try:
            return _object.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _object.decode(_repaired(body))
    except msgspec.ValidationError:
        raise MalformedExportError("The body must be a JSON object.") from None
    except (ValueError, RecursionError):
        raise MalformedExportError("The body is not JSON.") from None


def _repaired(body: bytes) -> bytes:
    """The same with replacements for bytes that are no text and for halves of surrogate pairs: no database takes them.

    Raises ValueError, RecursionError.
    """
    if len(body) > MOST_JSON_RECORD_BYTES:
        raise ValueError("too large for Python's own reader")
    document = json.loads(body.decode("utf-8", "replace"))
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")


def _members(holder: Mapping[str, msgspec.Raw], name: str) -> list[dict[str, msgspec.Raw]]:
    try:
        return _objects.decode(holder.get(name, _NULL)) or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise MalformedExportError(f"{name}: must be a list of objects.") from None


def _listed(holder: Mapping[str, msgspec.Raw], name: str) -> list[msgspec.Raw]:
    try:
        return _items.decode(holder.get(name, _NULL)) or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise MalformedExportError(f"{name}: must be a list.") from None


def _text(holder: Mapping[str, msgspec.Raw], name: str) -> str:
    try:
        found = _value(holder.get(name, _NULL))
    except (ValueError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


def _value(raw: msgspec.Raw) -> Any:
    """Raises ValueError, RecursionError."""
    content = bytes(raw)
    try:
        value = json.loads(content)
    except UnicodeDecodeError:
        return json.loads(_repaired(content))
    # What was skipped until now has been looked at for its structure only.
    return json.loads(_repaired(content)) if b"\\u" in content else value


def _built(message: type[Built], written: msgspec.Raw, name: str) -> Built:
    built = message()
    if len(bytes(written)) > MOST_JSON_RECORD_BYTES:
        raise LargeExportError(f"{name}: larger than {MOST_JSON_RECORD_BYTES} bytes.")
    try:
        ParseDict(_value(written) or {}, built, ignore_unknown_fields=True)
    except _UNREADABLE:
        raise MalformedExportError(f"{name}: not readable.") from None
    return built


def _json_record(form: Form[Record], raw: msgspec.Raw) -> Record | RejectedRecord:
    if len(bytes(raw)) > MOST_JSON_RECORD_BYTES:
        return RejectedRecord(f"larger than {MOST_JSON_RECORD_BYTES} bytes")
    record = form.message()
    try:
        written = _value(raw)
        if not isinstance(written, dict):
            return RejectedRecord("not an object")
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
