"""Reads the records of an export in JSON, one by one.

Nested parts are parsed only on demand, so that a large document never becomes one much larger object in memory.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from analytics.telemetry.errors import LargeExportError, MalformedExportError, RejectedRecord
from analytics.telemetry.origin import Seen
from analytics.telemetry.records import (
    MAX_JSON_RECORD_BYTES,
    Form,
    Located,
    Record,
    counted,
    origin_or_rejection,
    readable,
    unreadable,
)

Built = TypeVar("Built", bound=Message)

_items = msgspec.json.Decoder(list[msgspec.Raw] | None)
_NULL = msgspec.Raw(b"null")
_FIELD = re.compile(r"Failed to parse (\w+) field")
_MAX_FIELDS = 6


# The maximum size for Python's own reader, which makes objects of all values.
MAX_REPAIRED_BYTES = 8 * 1024 * 1024
# This depth is beyond any message that protobuf reads, and within that of every reader of JSON.
MAX_NESTED = 300

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
# The pattern skips whole texts; one without a closing quote ends with the document.
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)|[\[{]++|[\]}]++', re.DOTALL)


def object_of(content: bytes) -> dict[str, msgspec.Raw]:
    """Raises msgspec.ValidationError if the value is not an object, ValueError, RecursionError."""
    try:
        try:
            return _object.decode(content)
        except RecursionError:
            content = _shallow(content)
            return _object.decode(content)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _object.decode(_repaired(content))


def value_of(raw: msgspec.Raw) -> Any:
    content = bytes(raw)
    try:
        # Python's reader of bytes lets halves of surrogate pairs through, which a strict one does not.
        value = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        return json.loads(_repaired(content))
    return json.loads(_repaired(content)) if b"\\u" in content else value


def _repaired(content: bytes) -> bytes:
    """Replaces invalid UTF-8 and halves of surrogate pairs; NaN and infinities become OTLP's texts for them.

    Raises ValueError, RecursionError.
    """
    if len(content) > MAX_REPAIRED_BYTES:
        raise ValueError("too large for Python's own reader")
    document = json.loads(content.decode("utf-8", "replace"), parse_constant=str)
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")


def _shallow(content: bytes) -> bytes:
    if len(content) > MAX_REPAIRED_BYTES:
        raise ValueError("too large to be looked through")
    return b"".join(_pieces(content))


def _pieces(content: bytes) -> Iterator[bytes]:
    depth, kept_from = 0, 0
    for found in _BRACKETS.finditer(content):
        run = found[0]
        if run[:1] in b"[{":
            if depth <= MAX_NESTED < depth + len(run):
                yield content[kept_from : found.start() + MAX_NESTED - depth] + b"null"
            depth += len(run)
        elif run[:1] in b"]}":
            left = depth - len(run)
            if left <= MAX_NESTED < depth:
                kept_from = found.start() + depth - MAX_NESTED
            depth = left
    if depth <= MAX_NESTED:
        yield content[kept_from:]


def from_json(
    form: Form[Record], body: bytes, *, refuse_others: Callable[[Mapping[str, Any]], None]
) -> Iterator[Located[Record]]:
    """Raises MalformedExportError, which names the field, LargeExportError, and what `refuse_others` raises."""
    try:
        document = object_of(body) if body.strip() else {}
    except msgspec.ValidationError:
        raise MalformedExportError("The body must be a JSON object.") from None
    except (ValueError, RecursionError):
        raise MalformedExportError("The body is not JSON.") from None
    refuse_others(document)
    count, seen = 0, Seen()
    groups = _members(document, form.resources)
    if isinstance(groups, RejectedRecord):
        raise MalformedExportError(f"{form.resources}: must be a list of objects.")
    for number, group in enumerate(groups):
        for located in _of_resource(form, number, group, seen):
            count = counted(count)
            yield located


def _of_resource(form: Form[Record], number: int, written: msgspec.Raw, seen: Seen) -> Iterator[Located[Record]]:
    group = _holder(written)
    scopes = group if isinstance(group, RejectedRecord) else _members(group, form.scopes)
    if isinstance(group, RejectedRecord) or isinstance(scopes, RejectedRecord):
        yield unreadable((number,), str(scopes))
        return
    resource = _built(Resource, group, "resource")
    if isinstance(resource, RejectedRecord) and not scopes:
        yield unreadable((number,), str(resource))
    for place, scope in enumerate(scopes):
        yield from _of_scope(form, (number, place), (resource, _text(group, "schemaUrl")), scope, seen)


def _of_scope(
    form: Form[Record],
    place: tuple[int, int],
    resource: tuple[Resource | RejectedRecord, str],
    written: msgspec.Raw,
    seen: Seen,
) -> Iterator[Located[Record]]:
    scoped = _holder(written)
    records = scoped if isinstance(scoped, RejectedRecord) else _members(scoped, form.records)
    if isinstance(scoped, RejectedRecord) or isinstance(records, RejectedRecord):
        yield unreadable(place, str(records))
        return
    scope = _built(InstrumentationScope, scoped, "scope")
    origin = origin_or_rejection(*resource, scope, _text(scoped, "schemaUrl"), seen)
    for index, record in enumerate(records):
        if isinstance(origin, RejectedRecord):
            yield Located((*place, index), None, origin)
        else:
            yield Located((*place, index), origin, _record(form, record))


def _holder(written: msgspec.Raw) -> dict[str, msgspec.Raw] | RejectedRecord:
    try:
        return object_of(bytes(written))
    except msgspec.ValidationError:
        return RejectedRecord("not an object")
    except (ValueError, RecursionError):
        return RejectedRecord("not readable")


def _members(holder: Mapping[str, msgspec.Raw], name: str) -> list[msgspec.Raw] | RejectedRecord:
    try:
        return _items.decode(holder.get(name, _NULL)) or []
    except (ValueError, RecursionError):
        return RejectedRecord(f"{name} must be a list")


def _text(holder: Mapping[str, msgspec.Raw], name: str) -> str:
    try:
        found = value_of(holder.get(name, _NULL))
    except (ValueError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


def _built(message: type[Built], holder: Mapping[str, msgspec.Raw], name: str) -> Built | RejectedRecord:
    written = holder.get(name, _NULL)
    if len(bytes(written)) > MAX_JSON_RECORD_BYTES:
        raise LargeExportError(f"{name}: larger than {MAX_JSON_RECORD_BYTES} bytes.")
    return readable(f"the {name}", lambda: _parsed(value_of(written), message))


def _record(form: Form[Record], raw: msgspec.Raw) -> Record | RejectedRecord:
    if len(bytes(raw)) > MAX_JSON_RECORD_BYTES:
        return RejectedRecord(f"larger than {MAX_JSON_RECORD_BYTES} bytes")
    return readable("the record", partial(_made, form, raw))


def _made(form: Form[Record], raw: msgspec.Raw) -> Record:
    written = value_of(raw)
    if not isinstance(written, dict):
        raise RejectedRecord("not an object")
    for path, names in form.enums.items():
        _check_enum(written, path, names)
    return _parsed(_with_base64_ids(written, form.ids), form.message)


def _parsed(written: Any, message: type[Built]) -> Built:
    built = message()
    if written is not None and not isinstance(written, dict):
        raise RejectedRecord("not an object")
    try:
        ParseDict(written or {}, built, ignore_unknown_fields=True)
    except ParseError as error:
        # The text of the error may quote what was sent; the names in it are the format's own.
        fields = ".".join(_FIELD.findall(str(error))[:_MAX_FIELDS])
        raise RejectedRecord(f"{fields or 'the record'} is not readable") from None
    return built


def _check_enum(written: Mapping[str, Any], path: tuple[str, ...], names: frozenset[str]) -> None:
    """Raises RejectedRecord for an unknown name, which protobuf's reader would skip like an unknown field."""
    value: Any = written
    for step in path:
        if value is None:
            return
        if not isinstance(value, Mapping):
            raise RejectedRecord(f"{path[0]} is not an object")
        value = value.get(step)
    # A number in text is one of the forms that protobuf's JSON has for it.
    known = value in names or value.lstrip("-").isdecimal() if isinstance(value, str) else value is None
    if not known and (isinstance(value, bool) or not isinstance(value, int)):
        raise RejectedRecord(f"{'.'.join(path)} is no value that there is")


def _with_base64_ids(written: Mapping[str, Any], ids: tuple[str, ...]) -> dict[str, Any]:
    """OTLP's JSON has ids in hexadecimal, protobuf's own JSON in base64."""
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
