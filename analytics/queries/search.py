"""Searches the prompts and completions of requests for words and phrases.

A request matches if every word and quoted phrase of the query occurs in its prompt or its completion: inside words too,
in any letter case. The newest match comes first.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client, text_index
from analytics.clickhouse.text_index import TEXT, folded
from analytics.queries import visible
from analytics.queries.request_cursor import KEYED, RequestCursor, keyed
from analytics.queries.request_filters import RequestFilter, conditions_of
from analytics.queries.requests import RequestRow, get_requests
from analytics.queries.search_terms import Part, Tokens, letters, tokens
from analytics.queries.shared_search import (
    BEFORE_MATCH,
    PREVIEW_CHARACTERS,
    Match,
    Sought,
    has_shared_texts,
    lines_of,
    sharing_matches,
)

# The maximum number of texts that a query reads when no index helps: a query of very short words, or any on a server
# without text indexes.
READ_WITHOUT_INDEX = 10_000

# A frequent word is searched among this many of the newest requests first, so that the index of older ones is not read.
# A smaller number would cost rare words, which need a second query, more than it saves frequent ones.
_LOOK_FIRST_AT = 20_000_000
# The number is smaller with filters on other columns, where a frequent word makes the query look up every request of
# the range that passes them.
_LOOK_FIRST_AT_FILTERED = 20_000
# The maximum number of possible matches that are looked up by their keys.
_FEW = 1_000
# A part of more words than this is looked for in the texts themselves, the newest first: so many words are in many
# texts, and each of them would be looked up in every part of the index.
_MAX_WORDS = 1_000
_REPEAT_PROBE_SECONDS = 60.0

_FROM = " AND ts >= {start:DateTime64(6, 'UTC')}"
_BEFORE = " AND ts < {before:DateTime64(6, 'UTC')}"
_NONE: Mapping[str, Any] = {}
# The setting makes the server read the whole index before any text. Reading both part by part takes a third longer for
# a rare word.
_INDEX_FIRST: Mapping[str, Any] = {"use_skip_indexes_on_data_read": 0}


@dataclass(frozen=True)
class SearchFilter:
    """`terms` come from `search_terms.parse`. An empty text or None matches all; the range is inclusive."""

    terms: Sequence[str]
    model: str = ""
    operation: str = ""
    user_id: str = ""
    session_id: str = ""
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class Preview:
    text: str
    start: int
    more: bool


@dataclass(frozen=True)
class SearchHit:
    request: RequestRow
    prompt: Preview
    completion: Preview


@dataclass(frozen=True)
class Found:
    """`more`: there are further matches, older than the last hit. Texts older than `searched_since` were not searched;
    None if all texts of the range were. `folded_terms` are to be marked in the previews."""

    hits: list[SearchHit]
    more: bool
    searched_since: datetime | None
    folded_terms: list[str]


@dataclass(frozen=True)
class _Words:
    part: int
    words: list[str]


@dataclass(frozen=True)
class _Vocabulary:
    """The words that have each part of a search, one more than _MAX_WORDS if there are more. `lacks_long`: texts have
    words that are too long for the vocabulary."""

    words: list[list[str]]
    lacks_long: bool

    @property
    def has_all(self) -> bool:
        return self.lacks_long or all(self.words)


@dataclass(frozen=True)
class _Stretch:
    start: datetime | None
    before: datetime | None


@dataclass(frozen=True)
class _Question:
    project_id: UUID
    narrow: str
    exact: str
    params: Mapping[str, Any]
    filters: SearchFilter
    sought: Sought | None

    @property
    def looks_elsewhere(self) -> bool:
        return bool(self.filters.model or self.filters.operation or self.filters.user_id)


def search(project_id: UUID, filters: SearchFilter, *, limit: int) -> Found:
    """The newest matches. Raises AnalyticsLimitError for a query of frequent pieces that match almost nowhere, which
    takes too long."""
    terms = _fold(filters.terms)
    found_by = tokens(terms) if _has_indexes() else Tokens([], [], [], [], is_indexed=False)
    since = None if found_by else _start_of_recent(project_id, filters)
    vocabulary = _look_up(project_id, found_by.parts)
    if not vocabulary.has_all:
        return Found([], more=False, searched_since=None, folded_terms=terms)
    question = _question(project_id, filters, terms, found_by, vocabulary)
    matches = _newest_first(question, since=since, limit=limit + 1)
    shown = matches[:limit]
    rows = {row.request_id: row for row in get_requests(project_id, shown)}
    hits = [_hit(rows[match.request_id], match) for match in shown if match.request_id in rows]
    return Found(hits, len(matches) > limit, since, terms)


def _fold(terms: Sequence[str]) -> list[str]:
    """Uses the store's own function, so that both sides agree on every letter."""
    if all(term.isascii() for term in terms):
        return [term.lower() for term in terms]
    sql = f"SELECT arrayMap(term -> {folded('term')}, {{terms:Array(String)}})"
    return client.query(sql, {"terms": list(terms)}, row=list[str], name="search.fold")[0]


def _start_of_recent(project_id: UUID, filters: SearchFilter) -> datetime | None:
    where, params = _conditions(project_id, start=filters.start, end=filters.end)
    sql = f"""
        SELECT ts FROM payloads WHERE {where} ORDER BY ts DESC, request_id DESC LIMIT 1 OFFSET {{offset:UInt64}}
    """
    rows = visible.query(sql, {**params, "offset": READ_WITHOUT_INDEX - 1}, row=datetime, name="search.recent")
    return rows[0] if rows else None


def _look_up(project_id: UUID, parts: Sequence[Part]) -> _Vocabulary:
    if not parts:
        return _Vocabulary([], lacks_long=False)
    params: dict[str, Any] = {"project": project_id}
    queries = [
        f"SELECT toUInt8({len(parts)}) AS part, groupUniqArray(1)(word) AS words FROM vocabulary"
        " PREWHERE project_id = {project:UUID} AND word = ''"
    ]
    for index, part in enumerate(parts):
        queries.append(
            f"SELECT toUInt8({index}) AS part, groupUniqArray({_MAX_WORDS + 1})(word) AS words FROM vocabulary"
            f" PREWHERE project_id = {{project:UUID}}"
            f" AND hasAllTokens(word, {{letters{index}:Array(String)}}, '{text_index.PART_TOKENS}')"
            f" WHERE word LIKE {{like{index}:String}}"
        )
        # A word has neither `%` nor `_` nor a backslash.
        params[f"like{index}"] = f"{'%' * part.open_before}{part.text}{'%' * part.open_after}"
        params[f"letters{index}"] = letters(part)
    sql = " UNION ALL ".join(queries)
    rows = client.query(sql, params, row=_Words, name="search.words", database_settings=_INDEX_FIRST)
    *words, long_words = [row.words for row in sorted(rows, key=lambda row: row.part)]
    return _Vocabulary(words, lacks_long=bool(long_words))


def _question(
    project_id: UUID, filters: SearchFilter, terms: Sequence[str], found_by: Tokens, vocabulary: _Vocabulary
) -> _Question:
    narrow, params = _conditions(project_id, end=filters.end)
    indexed, token_params = _indexed(found_by, vocabulary)
    narrow += indexed
    params |= token_params
    exact = " AND ".join(f"position({TEXT}, {{term{index}:String}}) > 0" for index in range(len(terms)))
    exact += " AND empty(shared)"
    params.update({f"term{index}": term for index, term in enumerate(terms)})
    if filters.session_id:
        exact += " AND session_id = {session:String}"
        params["session"] = filters.session_id
    sought = _sought(terms, found_by, vocabulary) if has_shared_texts(project_id) else None
    return _Question(project_id, narrow, exact, params, filters, sought)


def _sought(terms: Sequence[str], found_by: Tokens, vocabulary: _Vocabulary) -> Sought:
    """Each line is looked up for itself, by the parts of words whose words are known."""
    known = dict(zip(found_by.parts, vocabulary.words, strict=True))
    narrow, params = list[str](), dict[str, Any]()
    for place, line in enumerate(lines_of(terms)):
        own = tokens([line]) if found_by else found_by
        parts = [part for part in own.parts if part in known]
        words = _Vocabulary([known[part] for part in parts], vocabulary.lacks_long)
        where, found = _indexed(replace(own, parts=parts), words, f"_{place}_")
        narrow.append(where)
        params |= found
    return Sought(terms, narrow, params)


def _indexed(found_by: Tokens, vocabulary: _Vocabulary, mark: str = "") -> tuple[str, dict[str, Any]]:
    """`mark` is in the names of the parameters."""
    where, params = "", dict[str, Any]()
    if found_by.words:
        where += (
            f" AND hasAllTokens({text_index.WORDS_TEXT}, {{words{mark}:Array(String)}}, '{text_index.WORD_TOKENS}')"
        )
        params[f"words{mark}"] = found_by.words
    if found_by.pairs:
        where += f" AND hasAllTokens({text_index.PAIRS}, {{pairs{mark}:Array(String)}}, '{text_index.PAIR_TOKENS}')"
        params[f"pairs{mark}"] = found_by.pairs
    for index, (part, words) in enumerate(zip(found_by.parts, vocabulary.words, strict=True)):
        if len(words) > _MAX_WORDS:
            continue
        ways = []
        if words:
            any_word = f"{{part{mark}{index}:Array(String)}}, '{text_index.WORD_TOKENS}'"
            ways.append(f"hasAnyTokens({text_index.WORDS_TEXT}, {any_word})")
            params[f"part{mark}{index}"] = words
        if vocabulary.lacks_long:
            in_long = f"{{long{mark}{index}:Array(String)}}, '{text_index.PART_TOKENS}'"
            ways.append(f"hasAllTokens({text_index.LONG_TEXT}, {in_long})")
            params[f"long{mark}{index}"] = letters(part)
        where += f" AND ({' OR '.join(ways)})"
    if found_by.unspaced:
        pairs = f"{{unspaced{mark}:Array(String)}}, '{text_index.UNSPACED_TOKENS}'"
        where += f" AND hasAllTokens({text_index.UNSPACED_TEXT}, {pairs})"
        params[f"unspaced{mark}"] = found_by.unspaced
    return where, params


def _newest_first(question: _Question, *, since: datetime | None, limit: int) -> list[Match]:
    filters = question.filters
    start = max(filter(None, (since, filters.start)), default=None)
    count = _LOOK_FIRST_AT_FILTERED if question.looks_elsewhere else _LOOK_FIRST_AT
    middle = (
        start_of_newest(question.project_id, count, start=start, end=filters.end)
        if start or filters.end
        else recent_start_of_newest(question.project_id, count)
    )
    if middle is None or (start and middle <= start):
        return _find(question, _Stretch(start, None), limit)
    found = _find(question, _Stretch(middle, None), limit)
    if len(found) < limit:
        found += _find(question, _Stretch(start, middle), limit - len(found))
    return found


def _find(question: _Question, stretch: _Stretch, limit: int) -> list[Match]:
    found = _find_alone(question, stretch, limit)
    if question.sought is None:
        return found
    found += _find_sharing(question, question.sought, stretch, limit)
    return sorted(found, key=lambda match: (match.ts, match.request_id), reverse=True)[:limit]


def _find_sharing(question: _Question, sought: Sought, stretch: _Stretch, limit: int) -> list[Match]:
    where, params = _stretch_conditions(question, stretch)
    if question.filters.session_id:
        where += " AND session_id = {session:String}"
        params["session"] = question.filters.session_id
    if question.looks_elsewhere:
        passing, passing_params = _passing_condition(question, stretch)
        where += f" AND (ts, request_id) IN (SELECT ts, request_id FROM requests WHERE {passing})"
        params |= passing_params
    return sharing_matches(question.project_id, sought, where, params, limit=limit)


def _find_alone(question: _Question, stretch: _Stretch, limit: int) -> list[Match]:
    """Finds requests that have their texts for themselves."""
    if not question.looks_elsewhere:
        return _matches(question, stretch, limit)
    possible = _possible(question, stretch)
    if len(possible) > _FEW:
        # A frequent text is searched in the texts of the requests that pass the other filters.
        where, params = _passing_condition(question, stretch)
        passing = f" AND (ts, request_id) IN (SELECT ts, request_id FROM requests WHERE {where})"
        return _matches(question, stretch, limit, passing, params)
    keys = _passing(question, possible)
    among = keyed(question.project_id, keys)
    return _matches(question, stretch, limit, f" AND {KEYED}", among) if keys else []


def _matches(
    question: _Question, stretch: _Stretch, limit: int, passing: str = "", passing_params: Mapping[str, Any] = _NONE
) -> list[Match]:
    narrow, params = _narrowed(question, stretch)
    params |= {**passing_params, "limit": limit}
    terms = ", ".join(f"{{term{index}:String}}" for index in range(len(question.filters.terms)))
    # The texts are read one by one for the rows that PREWHERE leaves; with these conditions in WHERE, whole blocks of
    # texts would be read.
    sql = f"""
        SELECT ts, request_id, {_preview("prompt", terms)}, {_preview("completion", terms)}
        FROM payloads PREWHERE {narrow}{passing} WHERE {question.exact}
        ORDER BY ts DESC, request_id DESC LIMIT {{limit:UInt64}}
    """
    return visible.query(sql, params, row=Match, name="search.matches", database_settings=_INDEX_FIRST)


def _possible(question: _Question, stretch: _Stretch) -> list[RequestCursor]:
    """The index's possible matches, in no order; more than _FEW are incomplete."""
    narrow, params = _narrowed(question, stretch)
    sql = f"SELECT ts, request_id FROM payloads PREWHERE {narrow} LIMIT {_FEW + 1}"
    return visible.query(sql, params, row=RequestCursor, name="search.possible", database_settings=_INDEX_FIRST)


def _narrowed(question: _Question, stretch: _Stretch) -> tuple[str, dict[str, Any]]:
    narrow, params = question.narrow, dict(question.params)
    if stretch.start:
        narrow += _FROM
        params["start"] = stretch.start
    if stretch.before:
        narrow += _BEFORE
        params["before"] = stretch.before
    return narrow, params


def _preview(column: str, terms: str) -> str:
    """SQL for the piece of a text around its first term, and for the piece's start, counted from 1.

    The piece has one character more than is shown, which tells that the text goes on.
    """
    places = f"arrayMap(term -> positionUTF8({folded(column)}, term), [{terms}])"
    start = f"greatest(toInt64(arrayFirst(place -> place > 0, {places})) - {BEFORE_MATCH}, 1)"
    return (
        f"{start} AS {column}_start,"
        f" substringUTF8({column}, {column}_start, {PREVIEW_CHARACTERS + 1}) AS {column}_piece"
    )


def _passing(question: _Question, possible: Sequence[RequestCursor]) -> list[RequestCursor]:
    if not possible:
        return []
    where, params = _passing_condition(question, _Stretch(None, None))
    sql = f"SELECT ts, request_id FROM requests WHERE {where} AND {KEYED}"
    given = params | keyed(question.project_id, possible)
    return visible.query(sql, given, row=RequestCursor, name="search.passing")


def _passing_condition(question: _Question, stretch: _Stretch) -> tuple[str, dict[str, Any]]:
    filters = question.filters
    where, params = _stretch_conditions(question, stretch)
    own = conditions_of(RequestFilter(model=filters.model, operation=filters.operation, user_id=filters.user_id))
    return " AND ".join((where, *own.conditions.values())), {**params, **own.values}


def _stretch_conditions(question: _Question, stretch: _Stretch) -> tuple[str, dict[str, Any]]:
    where, params = _conditions(question.project_id, start=stretch.start, end=question.filters.end)
    if stretch.before:
        where += _BEFORE
        params["before"] = stretch.before
    return where, params


def _conditions(
    project_id: UUID, *, start: datetime | None = None, end: datetime | None = None
) -> tuple[str, dict[str, Any]]:
    where = "project_id = {project:UUID}"
    params: dict[str, Any] = {"project": project_id}
    if start:
        where += _FROM
        params["start"] = start
    if end:
        where += " AND ts <= {end:DateTime64(6, 'UTC')}"
        params["end"] = end
    return where, params


def _hit(row: RequestRow, match: Match) -> SearchHit:
    prompt = _as_preview(match.prompt_piece, match.prompt_start)
    return SearchHit(row, prompt, _as_preview(match.completion_piece, match.completion_start))


def _as_preview(text: str, start: int) -> Preview:
    return Preview(text[:PREVIEW_CHARACTERS], start - 1, len(text) > PREVIEW_CHARACTERS)


_known_indexes: tuple[bool, float] = (False, float("-inf"))


def _has_indexes() -> bool:
    global _known_indexes
    known, probed_at = _known_indexes
    if known or time.monotonic() - probed_at < _REPEAT_PROBE_SECONDS:
        return known
    sql = "SELECT name FROM system.data_skipping_indices WHERE database = currentDatabase() AND table = 'payloads'"
    known = {*client.query(sql, {}, row=str, name="search.indexes")} >= text_index.NAMES
    _known_indexes = (known, time.monotonic())
    return known


_CACHE_SECONDS = 600.0
_MAX_CACHED = 1_000


# The cached answers and their times (monotonic seconds), by project and count.
_cache: dict[tuple[UUID, int], tuple[datetime | None, float]] = {}


def recent_start_of_newest(project_id: UUID, count: int) -> datetime | None:
    """Returns `start_of_newest` over all requests, cached for ten minutes."""
    now = time.monotonic()
    answer, cached_at = _cache.get((project_id, count), (None, float("-inf")))
    if now - cached_at > _CACHE_SECONDS:
        answer = start_of_newest(project_id, count)
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        _cache[project_id, count] = (answer, now)
    return answer


def start_of_newest(
    project_id: UUID, count: int, *, start: datetime | None = None, end: datetime | None = None
) -> datetime | None:
    """Returns a full hour since which about `count` requests were made in the range, or None when there are fewer.

    A query of the newest rows that names a start reads no older parts of a table. The figures come from the hourly
    rollup, so the hour is a hint where to look first, and no exact bound.
    """
    conditions = ["project_id = {project:UUID}"]
    params: dict[str, Any] = {"project": project_id, "count": count}
    if start:
        conditions.append("hour >= {start:DateTime64(6, 'UTC')}")
        params["start"] = start
    if end:
        conditions.append("hour <= {end:DateTime64(6, 'UTC')}")
        params["end"] = end
    sql = f"""
        SELECT toDateTime64(hour, 0, 'UTC') AS since FROM (
            SELECT hour, sum(sum(h.requests)) OVER (ORDER BY hour DESC) AS newer
            FROM requests_hourly AS h WHERE {" AND ".join(conditions)} GROUP BY hour
        ) WHERE newer >= {{count:UInt64}} ORDER BY hour DESC LIMIT 1
    """
    rows = client.query(sql, params, row=datetime, name="requests.newest")
    return rows[0] if rows else None
