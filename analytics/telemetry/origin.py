from __future__ import annotations

import hashlib
from dataclasses import dataclass

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from analytics.telemetry.values import attributes

_ID_BYTES = 8

Seen = dict[int, int]
"""Of one export: how often each content has been seen again."""


@dataclass(frozen=True)
class Origin:
    service_name: str
    resource_attributes: dict[str, str]
    resource_schema_url: str
    scope_name: str
    scope_version: str
    scope_attributes: dict[str, str]
    scope_schema_url: str
    size: int  # The size of these fields in bytes.
    digest: bytes
    seen: Seen

    def record_id(self, content: bytes) -> int:
        """Returns a record's id, the same when it is sent again; `content` is its protobuf form.

        Equal records of one export, which coarse clocks produce, are distinguished by their order.
        """
        number = int.from_bytes(hashlib.blake2b(content, digest_size=_ID_BYTES, key=self.digest).digest(), "big")
        repeated = self.seen[number] = self.seen.get(number, -1) + 1
        return (number + repeated) % 2**64


def origin_of(
    resource: Resource, resource_schema_url: str, scope: InstrumentationScope, scope_schema_url: str, seen: Seen
) -> Origin:
    of_resource = attributes(resource.attributes)
    parts = (
        resource.SerializeToString(deterministic=True),
        resource_schema_url.encode(),
        scope.SerializeToString(deterministic=True),
        scope_schema_url.encode(),
    )
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return Origin(
        service_name=of_resource.get("service.name", ""),
        resource_attributes=of_resource,
        resource_schema_url=resource_schema_url,
        scope_name=scope.name,
        scope_version=scope.version,
        scope_attributes=attributes(scope.attributes),
        scope_schema_url=scope_schema_url,
        size=sum(map(len, parts)),
        digest=digest.digest(),
        seen=seen,
    )
