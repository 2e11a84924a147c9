"""Takes the words of deleted texts out of the vocabulary that a search looks into.

A word stays for as long as another text of the project has it, which its count tells. A count that is too high costs a
look-up; one that is too low would hide texts from searches. So the rows of a word are never removed one by one: those
of a week are merged, and rows whose count is 0 then are removed. Such a row says nothing about a text that is stored
meanwhile, whose words are in another row, or were counted by the merge. Texts that expire by tomorrow are not
subtracted, because their words may have expired before them.

Texts may have any number of different words. They are subtracted in pieces that fit into memory, and the pieces are
fixed before the first of them: each is subtracted once, however often a deletion is broken off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from analytics.clickhouse import client
from analytics.clickhouse.text_index import WORD, WORDS
from analytics.reconciliation.comparison import LIMITS

_COLUMNS = ("project_id", "word", "week", "occurrences", "drop_date")
_SIZES = "SELECT request_id, length(prompt) + length(completion) FROM payloads WHERE $where"
_COUNTS = f"""
    SELECT project_id, {WORD} AS word, toMonday(drop_date) AS week, -count() AS occurrences, max(drop_date)
    FROM payloads ARRAY JOIN {WORDS} AS any_word
    WHERE $where AND drop_date > toDate(now('UTC')) + 1
    AND cityHash64(word) % {{slices:UInt32}} = {{slice:UInt32}}
    GROUP BY project_id, word, week ORDER BY week, word
"""
# What was subtracted counts for itself until a merge.
_PROJECTS = "SELECT DISTINCT project_id FROM vocabulary WHERE occurrences <= 0"
_WEEKS = "SELECT DISTINCT week FROM vocabulary WHERE project_id = {project:UUID} AND occurrences <= 0 ORDER BY week"
# The server leaves parts alone that it is merging already, or that have just been stored.
_TIMES = 2
# A megabyte has some 200,000 words at most that differ.
_PIECE_BYTES = 1 << 20


class Piece(msgspec.Struct, frozen=True):
    """A number of requests, whose words are subtracted in so many slices."""

    requests: int
    slices: int


def pieces_of(where: str, parameters: Mapping[str, Any], ids: Sequence[UUID]) -> tuple[Piece, ...]:
    """Returns the pieces of texts that are about to be deleted, by their sizes, in the order of the ids."""
    found = client.execute(_SIZES.replace("$where", where), parameters, settings=LIMITS, fresh=("payloads",))
    sizes: dict[UUID, int] = dict(found)
    return tuple(_pieces([sizes.get(one, 0) for one in ids])) if sizes else ()


def subtract_words(
    where: str, parameters: Mapping[str, Any], ids: Sequence[UUID], pieces: Sequence[Piece], *, token: str
) -> None:
    """Subtracts the words of texts that are about to be deleted; `where` has a parameter for the ids. A second call
    with the same pieces and token changes nothing, though it may find some of the texts deleted."""
    start = 0
    for number, piece in enumerate(pieces):
        own = {**parameters, "ids": [str(one) for one in ids[start : start + piece.requests]], "slices": piece.slices}
        start += piece.requests
        for index in range(piece.slices):
            sql = _COUNTS.replace("$where", where)
            rows = client.execute(sql, {**own, "slice": index}, settings=LIMITS, fresh=("payloads",))
            client.insert("vocabulary", _COLUMNS, rows, token=f"{token}-{number}-{index}")


def forget_words(project_id: UUID) -> None:
    """Removes the words that no text of the project has any more. What the server cannot merge now stays for the next
    call, which is in the night at the latest."""
    project = {"project": project_id}
    for _ in range(_TIMES):
        weeks = client.execute(_WEEKS, project, settings=LIMITS, fresh=("vocabulary",))
        if not weeks:
            return
        for (week,) in weeks:
            client.execute("OPTIMIZE TABLE vocabulary PARTITION {week:Date} FINAL", {"week": week}, LIMITS)
        client.execute("DELETE FROM vocabulary WHERE project_id = {project:UUID} AND occurrences = 0", project, LIMITS)


def forget_all_words() -> None:
    """Removes the words that no text has any more, in all projects."""
    for (project_id,) in client.execute(_PROJECTS, settings=LIMITS, fresh=("vocabulary",)):
        forget_words(project_id)


def _pieces(sizes: Sequence[int]) -> Iterator[Piece]:
    requests = size = 0
    for one in sizes:
        requests, size = requests + 1, size + one
        if size > _PIECE_BYTES:
            yield Piece(requests, -(-size // _PIECE_BYTES))
            requests = size = 0
    if size:
        yield Piece(requests, 1)
