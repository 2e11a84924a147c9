"""What reading an export in protobuf and in JSON has in common: forms, places and bounds.

All signals have the same structure: resources hold scopes, scopes hold records. In protobuf the fields have the same
numbers too (`opentelemetry/proto/*/v1/*.proto`), so a logs payload decodes as spans without span ids.
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
    """How a signal's records are written. `ids` are the JSON fields that hold hexadecimal text; `enums` maps the paths
    of enum fields to their known names."""

    message: type[Record]
    resources: str
    scopes: str
    records: str
    ids: tuple[str, ...] = ()
    enums: Mapping[tuple[str, ...], frozenset[str]] = field(default_factory=dict)


class Located(NamedTuple, Generic[Record]):
    """One record, or why it cannot be stored. `place`: the numbers of its resource, scope and itself, if known."""

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
    if isinstance(resource, RejectedRecord):
        return resource
    if isinstance(scope, RejectedRecord):
        return scope
    return readable(
        "the resource or scope", lambda: origin_of(resource, resource_schema_url, scope, scope_schema_url, seen)
    )


def readable(name: str, make: Callable[[], Made]) -> Made | RejectedRecord:
    """Returns the result of `make`, or its rejection. Raises only LargeExportError.

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
    return Located(place, None, RejectedPart(reason))
