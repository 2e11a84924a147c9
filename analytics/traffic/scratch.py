"""The table in memory that holds the texts while traffic is generated, and is dropped afterwards.

The table of a killed command is empty after the store's next start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from analytics.clickhouse import client
from analytics.traffic.texts import Exchange, Texts

_TEXT_COLUMNS = (
    "prompt_head", "prompt_tail", "request_head", "request_tail", "answer", "answer_json", "begun_answer", "begun_json",
)  # fmt: skip
_ROWS = 200


@dataclass(frozen=True, slots=True)
class TextTable:
    """The table of texts. `sizes` is SQL for the same table with empty texts."""

    name: str

    @property
    def sizes(self) -> str:
        nothing = ", ".join(f"'' AS {column}" for column in _TEXT_COLUMNS)
        return f"(SELECT id, prompt_size, answer_size, {nothing} FROM {self.name})"


@contextmanager
def text_table(texts: Texts) -> Iterator[TextTable]:
    # Each table has a unique name, since two commands may run at once.
    table = TextTable(f"traffic_texts_{uuid4().hex[:12]}")
    try:
        _fill(table.name, texts.exchanges)
        yield table
    finally:
        client.execute(f"DROP TABLE IF EXISTS {table.name} SYNC")


def _fill(name: str, exchanges: Sequence[Exchange]) -> None:
    columns = ", ".join(f"{column} String" for column in _TEXT_COLUMNS)
    client.execute(
        f"CREATE TABLE {name} (id UInt32, prompt_size UInt32, answer_size UInt32, {columns}) ENGINE = Memory"
    )
    rows = [
        (number, one.prompt_tokens, one.answer_tokens, *(getattr(one, column) for column in _TEXT_COLUMNS))
        for number, one in enumerate(exchanges)
    ]
    for first in range(0, len(rows), _ROWS):
        chunk = rows[first : first + _ROWS]
        client.insert(name, ("id", "prompt_size", "answer_size", *_TEXT_COLUMNS), chunk, token=f"{name}:{first}")
