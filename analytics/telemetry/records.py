"""The common parts of reading records of an export in protobuf and in JSON: their form, places and bounds.

All signals are built alike: resources hold scopes, scopes hold records. In protobuf the fields also have the same
numbers (`opentelemetry/proto/*/v1/*.proto`), which is why a logs payload decodes as spans without spans' ids.
`protobuf_records` and `json_records` take an export apart; both make the same messages of its records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from google.protobuf.message import Message
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from analytics.telemetry.errors import LargeExportError, RejectedPart, RejectedRecord
from analytics.telemetry.origin import Origin, Seen, origin_of

Record = TypeVar("Record", bound=Message)
Made = TypeVar("Made")

# The maximum number of records per export: exporters send 512 at once, collectors 8192.
MAX_RECORDS = 50_000
# The maximum size of one record in protobuf. In memory a record of empty values takes a hundred times as much.
MAX_RECORD_BYTES = 4 * 1024 * 1024
# The maximum is higher in JSON, where the same record takes more bytes.
MAX_JSON_RECORD_BYTES = 2 * MAX_RECORD_BYTES


@dataclass(frozen=True)
class Form(Generic[Record]):
    """The form in which a signal's records are written. `ids` are the JSON names of fields that hold hexadecimal text
    there; `enums` are the paths of enum fields with their known names."""

    message: type[Record]
    resources: str
    scopes: str
    records: str
    ids: tuple[str, ...] = ()
    enums: Mapping[tuple[str, ...], frozenset[str]] = field(default_factory=dict)


class Located(NamedTuple, Generic[Record]):
    """One record, or the reason why it cannot be stored. `place` are the numbers of its resource, its scope and itself,
    as far as they are known."""

    place: tuple[int, ...]
    origin: Origin | None
    record: Record | RejectedRecord


def counted(count: int) -> int:
    if count >= MAX_RECORDS:
        raise LargeExportError(f"An export holds at most {MAX_RECORDS} records. Send smaller batches.")
    return count + 1


def origin_or_rejection(
    resource: Resource | RejectedRecord,
    resource_schema_url: str,
    scope: InstrumentationScope | RejectedRecord,
    scope_schema_url: str,
    seen: Seen,
) -> Origin | RejectedRecord:
    """Returns the origin of a scope's records, or the reason why none of them can be stored."""
    if isinstance(resource, RejectedRecord):
        return resource
    if isinstance(scope, RejectedRecord):
        return scope
    return readable(
        "the resource or scope", lambda: origin_of(resource, resource_schema_url, scope, scope_schema_url, seen)
    )


def readable(name: str, make: Callable[[], Made]) -> Made | RejectedRecord:
    """Returns the result of `make`, or its rejection. Raises LargeExportError only.

    protobuf raises almost any error for content of another type than the field's, and SystemError for invalid text.
    """
    try:
        return make()
    except LargeExportError:
        raise
    except RejectedRecord as rejection:
        return rejection
    except Exception:
        return RejectedRecord(f"{name} is not readable")


def unreadable(place: tuple[int, ...], reason: str) -> Located[Any]:
    """Returns the rejection of a part whose number of records is unknown; it counts as one."""
    return Located(place, None, RejectedPart(reason))
