"""Puts the bodies of requests together from their own part and the texts that they share with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from analytics.clickhouse import client
from core.chunks import chunks

_AT_ONCE = 1_000
_PARTS = """
SELECT text_id, any({column}) AS part FROM shared_texts
PREWHERE project_id = {{project:UUID}} AND text_id IN {{ids:Array(UUID)}} GROUP BY text_id
"""


@dataclass(frozen=True)
class StoredRequest:
    """A request's own part of its body, as `payloads` has it, and the texts that belong behind `shared_at`
    characters."""

    request_id: UUID
    request: str
    shared: list[UUID]
    shared_at: int


@dataclass(frozen=True)
class _Part:
    text_id: UUID
    part: str


def whole_requests(project_id: UUID, rows: Sequence[StoredRequest]) -> Mapping[UUID, str]:
    """Returns the bodies of the requests. One whose texts are being erased is empty."""
    parts = parts_of(project_id, [row.shared for row in rows], "request")
    return {row.request_id: _whole(row, parts) for row in rows}


def parts_of(project_id: UUID, shared: Sequence[Sequence[UUID]], column: str) -> Mapping[UUID, str]:
    ids = list(dict.fromkeys(one for some in shared for one in some))
    found: dict[UUID, str] = {}
    for some in chunks(ids, _AT_ONCE):
        params = {"project": project_id, "ids": [str(one) for one in some]}
        rows = client.query(_PARTS.format(column=column), params, row=_Part, name=f"shared_texts.{column}")
        found.update({row.text_id: row.part for row in rows})
    return found


def _whole(row: StoredRequest, parts: Mapping[UUID, str]) -> str:
    if not row.shared:
        return row.request
    if not all(one in parts for one in row.shared):
        return ""
    return "".join((row.request[: row.shared_at], *map(parts.__getitem__, row.shared), row.request[row.shared_at :]))
