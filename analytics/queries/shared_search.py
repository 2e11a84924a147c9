"""Searches the requests whose messages are texts that they share with other requests.

Words of a search may lie in several texts of a request. A text ends where a message ends, so that a line of a term lies
in one text whole. The indexes of texts give, for each line, those that may have it; requests with one of these for each
line, or with the line in their own part, are read in pages, the newest first, until enough of them have every term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.clickhouse.text_index import folded
from analytics.queries import visible
from analytics.queries.request_cursor import KEYED, RequestCursor, keyed
from analytics.queries.search_terms import fold
from analytics.queries.shared_texts import parts_of
from core.chunks import chunks

PREVIEW_CHARACTERS = 240
BEFORE_MATCH = 80
_FIRST_PAGE, _LAST_PAGE = 100, 1_600
_TEXTS_AT_ONCE = 1_000
_ANY = "SELECT 1 FROM shared_texts PREWHERE project_id = {project:UUID} LIMIT 1"
_MAY_HAVE = """
arrayExists(
    one -> one IN (SELECT text_id FROM shared_texts PREWHERE project_id = {{project:UUID}}{narrow}), shared
)"""


def _places(column: str) -> str:
    return f"arrayMap(line -> positionUTF8({folded(column)}, line), {{lines:Array(String)}})"


_PLACES = f"""
SELECT text_id, any(lengthUTF8(prompt)) AS length, any({_places("prompt")}) AS places FROM shared_texts
PREWHERE project_id = {{project:UUID}} AND text_id IN {{ids:Array(UUID)}} GROUP BY text_id
"""


@dataclass(frozen=True)
class Match:
    ts: datetime
    request_id: UUID
    prompt_start: int
    prompt_piece: str
    completion_start: int
    completion_piece: str


@dataclass(frozen=True)
class Sought:
    """Folded `terms`; `narrow` is the condition of the indexes for each line of them, with their parameters."""

    terms: Sequence[str]
    narrow: Sequence[str]
    params: Mapping[str, Any]

    @property
    def lines(self) -> list[str]:
        return lines_of(self.terms)


@dataclass(frozen=True)
class _Request:
    ts: datetime
    request_id: UUID
    shared: list[UUID]
    in_prompt: list[int]
    in_completion: list[int]


@dataclass(frozen=True)
class _Text:
    text_id: UUID
    length: int
    places: list[int]


@dataclass(frozen=True)
class _Own:
    request_id: UUID
    prompt: str
    completion: str


_NO_TEXT = _Text(UUID(int=0), 0, [])


def lines_of(terms: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(line for term in terms for line in term.split("\n") if line))


def has_shared_texts(project_id: UUID) -> bool:
    return bool(client.query(_ANY, {"project": project_id}, row=int, name="search.shared"))


def sharing_matches(
    project_id: UUID, sought: Sought, where: str, params: Mapping[str, Any], *, limit: int
) -> list[Match]:
    """Returns the newest matches among the requests that `where` leaves."""
    matches: list[Match] = []
    last, size = None, max(_FIRST_PAGE, limit)
    while True:
        page = _page(sought, where, params, last, size)
        texts = _texts(project_id, sought, page)
        found = [one for one in page if all(map(any, zip(*_all_places(one, texts), strict=True)))]
        for some in chunks(found, max(limit, 1)):
            matches += _as_matches(project_id, sought, some, texts)
            if len(matches) >= limit:
                return matches[:limit]
        if len(page) < size:
            return matches
        last, size = page[-1], min(size * 4, _LAST_PAGE)


def _page(
    sought: Sought, where: str, params: Mapping[str, Any], last: _Request | None, size: int
) -> Sequence[_Request]:
    given = {**params, **sought.params, "lines": sought.lines, "limit": size}
    if last is not None:
        where += " AND (ts, request_id) < ({last_ts:DateTime64(6, 'UTC')}, {last_id:UUID})"
        where += " AND ts <= {last_ts:DateTime64(6, 'UTC')}"
        given |= {"last_ts": last.ts, "last_id": last.request_id}
    where += "".join(f" AND ((1{one}) OR {_MAY_HAVE.format(narrow=one)})" for one in sought.narrow if one)
    sql = f"""
        SELECT ts, request_id, shared, {_places("prompt")} AS in_prompt, {_places("completion")} AS in_completion
        FROM payloads PREWHERE {where} AND notEmpty(shared)
        ORDER BY ts DESC, request_id DESC LIMIT {{limit:UInt64}}
    """
    return visible.query(sql, given, row=_Request, name="search.sharing")


def _texts(project_id: UUID, sought: Sought, page: Sequence[_Request]) -> Mapping[UUID, _Text]:
    ids = list(dict.fromkeys(one for request in page for one in request.shared))
    found: dict[UUID, _Text] = {}
    for some in chunks(ids, _TEXTS_AT_ONCE):
        params = {"project": project_id, "ids": [str(one) for one in some], "lines": sought.lines}
        found.update({one.text_id: one for one in client.query(_PLACES, params, row=_Text, name="search.shared_texts")})
    return found


def _all_places(request: _Request, texts: Mapping[UUID, _Text]) -> Iterator[Sequence[int]]:
    yield request.in_prompt
    yield request.in_completion
    yield from (texts[one].places for one in request.shared if one in texts)


def _as_matches(
    project_id: UUID, sought: Sought, found: Sequence[_Request], texts: Mapping[UUID, _Text]
) -> Iterator[Match]:
    sql = f"SELECT request_id, prompt, completion FROM payloads PREWHERE {KEYED}"
    keys = [RequestCursor(one.ts, one.request_id) for one in found]
    own = {one.request_id: one for one in visible.query(sql, keyed(project_id, keys), row=_Own, name="search.own")}
    parts = parts_of(project_id, [one.shared for one in found], "prompt")
    for request in found:
        if row := own.get(request.request_id):
            prompt = "".join((*(parts.get(one, "") for one in request.shared), row.prompt))
            if all("\n" not in term or term in fold(prompt) or term in fold(row.completion) for term in sought.terms):
                places = _prompt_places(request, texts)
                yield Match(
                    request.ts, request.request_id,
                    *_preview(prompt, places), *_preview(row.completion, request.in_completion),
                )  # fmt: skip


def _prompt_places(request: _Request, texts: Mapping[UUID, _Text]) -> list[int]:
    """The place of each line in the whole prompt, counted from 1; 0 where it has none."""
    places, passed = [0] * len(request.in_prompt), 0
    for text in (*(texts.get(one, _NO_TEXT) for one in request.shared), _Text(_NO_TEXT.text_id, 0, request.in_prompt)):
        for index, place in enumerate(text.places):
            places[index] = places[index] or (place and passed + place)
        passed += text.length
    return places


def _preview(text: str, places: Sequence[int]) -> tuple[int, str]:
    start = max(next(filter(None, places), 0) - BEFORE_MATCH, 1)
    return start, text[start - 1 : start + PREVIEW_CHARACTERS]
