"""The place of a request in lists by time: its time and, among requests of the same microsecond, its id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# 16 digits of microseconds reach to the year 2286, which the store's times have.
_FORM = re.compile(r"([0-9]{1,16})-([0-9a-f]{32})", re.ASCII)


@dataclass(frozen=True, slots=True)
class RequestCursor:
    ts: datetime
    request_id: UUID

    def __str__(self) -> str:
        return f"{(self.ts - _EPOCH) // _MICROSECOND}-{self.request_id.hex}"


class Keyed(Protocol):
    @property
    def ts(self) -> datetime: ...

    @property
    def request_id(self) -> UUID: ...


KEYED = "project_id = {project:UUID} AND ts IN {times:Array(DateTime64(6, 'UTC'))} AND request_id IN {ids:Array(UUID)}"
"""The condition of the rows of some requests. Tables are sorted by time, so that the store finds nothing by an id
alone."""


def keyed(project_id: UUID, keys: Sequence[Keyed]) -> dict[str, Any]:
    return {"project": project_id, "times": [key.ts for key in keys], "ids": [key.request_id for key in keys]}


def parse_cursor(text: str) -> RequestCursor | None:
    found = _FORM.fullmatch(text)
    return RequestCursor(_EPOCH + int(found[1]) * _MICROSECOND, UUID(hex=found[2])) if found else None
