"""Takes the words of deleted texts out of the vocabulary that a search uses.

A word stays while another text of the project has it: the indexes of texts are asked. A word that stays too long costs
a look-up; one that is missing would hide texts from searches. A text that is stored while its words are removed has
brought them before or brings them afterwards, so that the inserts that run then are waited for, and the indexes asked
once more.

Every step can be repeated as long as the texts to delete are there: they are deleted after their words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from analytics.clickhouse import client
from analytics.clickhouse.lease import wait_for_running
from analytics.clickhouse.text_index import LONGEST, WORD_TOKENS, WORDS, WORDS_TEXT
from analytics.reconciliation.comparison import LIMITS
from analytics.request_log.columns import TEXTS_KEPT_DAYS
from core.chunks import chunks

TABLES = ("payloads", "shared_texts")
_INSERTS = ("INSERT INTO ingest ", "INSERT INTO shared_texts ")
_COLUMNS = ("project_id", "word", "week", "occurrences", "drop_date")
# As the views of the vocabulary write it.
_OCCURRENCES = 1_000_000_000
# A server without text indexes has no vocabulary.
_ANY = "SELECT 1 FROM vocabulary WHERE project_id = {project:UUID} LIMIT 1"
_SIZE = "SELECT sum(length(prompt) + length(completion)) FROM $table WHERE $where"
# The vocabulary has no longer words but the empty one, which says nothing of a text.
_WORDS = f"""
SELECT DISTINCT arrayJoin(arrayFilter(word -> length(word) <= {LONGEST}, {WORDS})) AS word FROM $table
WHERE $where AND cityHash64(word) % {{slices:UInt32}} = {{slice:UInt32}}
"""
_OTHERS = f"""
SELECT DISTINCT arrayJoin(arrayIntersect({WORDS}, {{words:Array(String)}})) FROM (
    SELECT prompt, completion FROM $table
    PREWHERE project_id = {{project:UUID}} AND hasAnyTokens({WORDS_TEXT}, {{words:Array(String)}}, '{WORD_TOKENS}')
    WHERE NOT ($where) LIMIT 100
)
"""
_IN_VOCABULARY = "project_id = {project:UUID} AND word IN {words:Array(String)}"
# A megabyte has some 100,000 words at most that differ.
_SLICE_BYTES = 4 << 20
# So many are looked up in every part of an index at once.
_ASKED_AT_ONCE = 1_000
_DELETED_AT_ONCE = 10_000


@dataclass(frozen=True)
class Doomed:
    """The texts to delete: a condition for each of `TABLES`, with the parameters of both."""

    project_id: UUID
    where: Mapping[str, str]
    parameters: Mapping[str, Any]

    def fill(self, sql: str, table: str) -> str:
        return sql.replace("$table", table).replace("$where", self.where[table])


def forget_words(doomed: Doomed, table: str) -> None:
    """Removes the words of the table's doomed texts that no text has which stays. Idempotent."""
    if not client.execute(_ANY, doomed.parameters, settings=LIMITS, fresh=("vocabulary",)):
        return
    sql = doomed.fill(_SIZE, table)
    [(size,)] = client.execute(sql, doomed.parameters, settings=LIMITS, fresh=TABLES)
    slices = -(-size // _SLICE_BYTES)
    for index in range(slices):
        own = {**doomed.parameters, "slices": slices, "slice": index}
        sql = doomed.fill(_WORDS, table)
        words = [word for (word,) in client.execute(sql, own, settings=LIMITS, fresh=TABLES)]
        for some in chunks(words, _DELETED_AT_ONCE):
            _forget(doomed, some)


def _forget(doomed: Doomed, words: Sequence[str]) -> None:
    kept = _of_others(doomed, words)
    known = _in_vocabulary(doomed.project_id, words)
    gone = known.difference(kept)
    # What a deletion that was broken off has removed while a text with it was stored.
    _add(doomed.project_id, kept - known)
    if gone:
        params = {"project": doomed.project_id, "words": sorted(gone)}
        client.execute(f"DELETE FROM vocabulary WHERE {_IN_VOCABULARY}", params, settings=LIMITS)
        for insert in _INSERTS:
            wait_for_running(insert)
        _add(doomed.project_id, _of_others(doomed, sorted(gone)))


def _of_others(doomed: Doomed, words: Sequence[str]) -> set[str]:
    return {word for some in chunks(words, _ASKED_AT_ONCE) for word in _asked(doomed, some)}


def _asked(doomed: Doomed, words: Sequence[str]) -> Iterator[str]:
    left = set(words)
    for table in TABLES:
        sql = doomed.fill(_OTHERS, table)
        while left:
            params = {**doomed.parameters, "words": sorted(left)}
            found = {word for (word,) in client.execute(sql, params, settings=LIMITS, fresh=TABLES)}
            if not found:
                break
            yield from found
            left -= found


def _in_vocabulary(project_id: UUID, words: Sequence[str]) -> set[str]:
    sql = f"SELECT DISTINCT word FROM vocabulary WHERE {_IN_VOCABULARY}"
    params = {"project": project_id, "words": list(words)}
    return {word for (word,) in client.execute(sql, params, settings=LIMITS, fresh=("vocabulary",))}


def _add(project_id: UUID, words: Collection[str]) -> None:
    if words:
        expires = datetime.now(UTC).date() + timedelta(days=TEXTS_KEPT_DAYS)
        week = expires - timedelta(days=expires.weekday())
        rows = [(project_id, word, week, _OCCURRENCES, expires) for word in sorted(words)]
        client.insert("vocabulary", _COLUMNS, rows, token=uuid4().hex)
