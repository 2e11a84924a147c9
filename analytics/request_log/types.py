from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class Column:
    """A field's ClickHouse `type`; whether an anonymised request keeps the value; the largest stored number (None: the
    type's own); and the migration that adds the column (0: the schema)."""

    type: str
    is_kept: bool = True
    maximum: int | None = None
    since: int = 0


@dataclass(frozen=True, slots=True)
class Since:
    """Annotates the type of a later column: `Annotated[Name, Since(58)]` has the number of the column's migration."""

    migration: int


Id = Annotated[str, Column("UUID")]
# A text of few different values: the store keeps each once, and its number in the rows.
Name = Annotated[str, Column("LowCardinality(String)")]
# What may name or lead to a person, or quote one. An anonymised request loses it.
PersonalText = Annotated[str, Column("String", is_kept=False)]
PersonalName = Annotated[str, Column("LowCardinality(String)", is_kept=False)]
Flag = Annotated[bool, Column("Bool")]
UInt16 = Annotated[int, Column("UInt16")]
UInt32 = Annotated[int, Column("UInt32")]
UInt64 = Annotated[int, Column("UInt64")]
# The type Date ends in 2149, so the time of a record and its retention together have to stay below that. The tables
# have the day on which the row is dropped instead.
RetentionDays = Annotated[int, Column("UInt16", is_kept=False, maximum=36_500)]
# US dollars as decimal text, empty for none.
Money = Annotated[str, Column("Decimal(18, 10)")]
