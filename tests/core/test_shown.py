"""The JSON of records by the fields of a typed dictionary."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TypedDict
from uuid import UUID

from core.wire.shown import shown_as

ID = UUID(int=7)


class Part(TypedDict):
    id: UUID
    cost_usd: float | None


class Whole(TypedDict):
    name: str
    note: str | None
    size: int
    part: Part | None
    parts: list[Part]


@dataclass(frozen=True)
class PartRecord:
    id: str
    cost_usd: Decimal | None


@dataclass(frozen=True)
class Record:
    name: str = ""
    note: str = ""
    size: int = 0
    part: PartRecord | None = None
    parts: tuple[PartRecord, ...] = ()


def test_shown_as__records__has_the_fields_of_the_shape_as_json() -> None:
    part = PartRecord(str(ID), Decimal("0.5"))
    shown: Part = {"id": ID, "cost_usd": 0.5}

    assert shown_as(Whole, Record(part=part, parts=(part,)), size=3) == {
        "name": "", "note": None, "size": 3, "part": shown, "parts": [shown],
    }  # fmt: skip


def test_shown_as__several_records__the_first_with_the_attribute_counts() -> None:
    found = shown_as(Whole, PartRecord(str(ID), None), Record(name="one"), Record(name="two", note="far"), note="")

    assert (found["name"], found["note"], found["part"]) == ("one", "", None)
