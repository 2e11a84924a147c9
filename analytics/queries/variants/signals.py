"""What users did after the answers of a rollout: asked the same again, edited the answer, or left.

All counts are of answered requests, by arm. An event shows some time after the answer, so young answers are not
counted: the arm with younger answers would have lower rates. Repeats and departures are looked up for a sample of each
arm, drawn by a hash of the request's id, so that the cost does not grow with the rollout. Texts are compared by
`word_overlap`: the log has whole requests, of which a user's last text is a part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.clickhouse.text_index import UNSPACED
from analytics.queries import visible
from analytics.queries.bad_ratings import OWN_SOURCES
from analytics.queries.request_cursor import KEYED, RequestCursor, keyed
from analytics.queries.shared_texts import parts_of
from analytics.queries.variants.outcomes import ANSWERED, IN_TIME, OF_ROLLOUT
from core.chunks import chunks

SAMPLE = 2_000
"""About so many answers of each arm are looked at where a session has to be read."""
ASKED_WITHIN = timedelta(minutes=10)
SETTLED_AFTER = timedelta(hours=1)
SAME_FROM = 0.9
"""From this share of common words on a text asks the same as the one before."""

# Sessions go on after the rollout. So long after its end nobody looks any more.
_LOOKED_AT_AFTER = timedelta(days=1)
# Texts are kept for 90 days at most, and previews of them longer.
_TEXTS_KEPT = timedelta(days=89)
_MAX_HASH = 2**64 - 1


@dataclass(frozen=True, slots=True)
class RolloutWindow:
    """The requests of a rollout from `start` up to, not including, `end`, as seen at `now`."""

    project_id: UUID
    rollout_id: UUID
    config_id: UUID
    start: datetime
    end: datetime
    now: datetime

    def parameters(self) -> dict[str, Any]:
        return {
            "project": self.project_id,
            "rollout": self.rollout_id,
            "config": self.config_id,
            "start": self.start,
            "end": self.end,
            "until": min(self.now, self.end + _LOOKED_AT_AFTER),
            "asked_until": self.now - ASKED_WITHIN,
            "settled_until": self.now - SETTLED_AFTER,
            "texts_from": self.now - _TEXTS_KEPT,
            "within": int(ASKED_WITHIN.total_seconds()),
            "own": list(OWN_SOURCES),
        }


@dataclass(frozen=True)
class AnswerCounts:
    """The `answered` requests of an arm.

    `without_session` name no session; `drawn_from` name one and ended at least ten minutes ago. `settled` ended at
    least an hour ago, and `settled_in_session` of these name a session; `edited` of the settled ones were edited, and
    `edited_squares` is the sum of the squares of their numbers by session.
    """

    variant: str
    answered: int = 0
    without_session: int = 0
    drawn_from: int = 0
    settled: int = 0
    settled_in_session: int = 0
    edited: int = 0
    edited_squares: int = 0


@dataclass(frozen=True)
class _Answer:
    variant: str
    request_id: UUID
    ts: datetime
    ended_at: datetime
    session: int
    has_text: bool
    is_settled: bool


@dataclass(frozen=True, slots=True)
class Sampled:
    variant: str
    session: int
    asked_again: bool | None
    left: bool | None


@dataclass(frozen=True)
class _Next:
    place: int
    request_id: UUID
    ts: datetime


@dataclass(frozen=True)
class _Last:
    session: int
    request_id: UUID


@dataclass(frozen=True)
class _Text:
    request_id: UUID
    is_last: bool
    text: str


@dataclass(frozen=True)
class _Sharing:
    request_id: UUID
    prompt: str
    shared: list[UUID]


_OF_THEM = f"{OF_ROLLOUT} AND {IN_TIME} AND {ANSWERED}"
_ENDED_AT = "addMilliseconds(r.ts, r.latency_ms)"
_SETTLED = f"{_ENDED_AT} <= {{settled_until:DateTime64(6, 'UTC')}}"
_HAS_TEXT = "(r.prompt_preview != '' AND r.ts >= {texts_from:DateTime64(6, 'UTC')})"
_DUE = f"r.session_id != '' AND {_ENDED_AT} <= {{asked_until:DateTime64(6, 'UTC')}}"
_EDITED = f"""
    SELECT r.variant AS variant, r.session_id, count() AS edits
    FROM requests AS r
    WHERE {_OF_THEM} AND {_SETTLED} AND r.request_id IN (
        SELECT f.request_id FROM feedback AS f FINAL
        WHERE f.project_id = {{project:UUID}} AND f.ts >= {{start:DateTime64(6, 'UTC')}}
            AND f.rollout_id = {{rollout:UUID}} AND f.request_known AND f.edited
    )
    GROUP BY r.variant, r.session_id"""
_COUNTS = f"""
SELECT toString(c.variant) AS variant, c.answered AS answered, c.without_session AS without_session,
    c.drawn_from AS drawn_from, c.settled AS settled, c.settled_in_session AS settled_in_session,
    e.edited AS edited, e.edited_squares AS edited_squares
FROM (
    SELECT
        r.variant AS variant, count() AS answered, countIf(r.session_id = '') AS without_session,
        countIf({_DUE}) AS drawn_from, countIf({_SETTLED}) AS settled,
        countIf({_SETTLED} AND r.session_id != '') AS settled_in_session
    FROM requests AS r
    WHERE {_OF_THEM}
    GROUP BY r.variant
) AS c
LEFT JOIN (
    SELECT variant, sum(edits) AS edited, sum(edits * edits) AS edited_squares FROM ({_EDITED}) GROUP BY variant
) AS e ON e.variant = c.variant
"""
_ANSWERS = f"""
SELECT
    toString(r.variant) AS variant, r.request_id AS request_id, r.ts AS ts, {_ENDED_AT} AS ended_at,
    cityHash64(r.session_id) AS session, {_HAS_TEXT} AS has_text, {_SETTLED} AS is_settled
FROM requests AS r
WHERE {_OF_THEM} AND {_DUE}
    AND cityHash64(r.request_id) <= if(r.variant = 'target', {{target_limit:UInt64}}, {{baseline_limit:UInt64}})
"""
# A further request of the same session, by a client and not by the product itself.
_FURTHER = """r.project_id = {project:UUID} AND r.ts >= {start:DateTime64(6, 'UTC')}
    AND r.ts <= {until:DateTime64(6, 'UTC')} AND r.source NOT IN {own:Array(String)}
    AND r.session_id != '' AND cityHash64(r.session_id) IN {sessions:Array(UInt64)}"""
# The next request to the same prompt: a chain of prompts hands the same text on from one to the other.
_NEXT = f"""
SELECT a.place AS place, n.request_id AS request_id, n.ts AS ts
FROM (
    SELECT place, session, ended_at
    FROM system.one
    ARRAY JOIN {{asked_in:Array(UInt64)}} AS session, {{ended:Array(DateTime64(6, 'UTC'))}} AS ended_at,
        {{places:Array(UInt32)}} AS place
) AS a
ASOF JOIN (
    SELECT cityHash64(r.session_id) AS session, r.ts AS ts, min(r.request_id) AS request_id
    FROM requests AS r
    WHERE {_FURTHER} AND r.prompt_config_id = {{config:UUID}}
    GROUP BY session, ts
) AS n ON n.session = a.session AND n.ts > a.ended_at
WHERE n.ts <= addSeconds(a.ended_at, {{within:UInt32}})
"""
_LAST = f"""
SELECT cityHash64(r.session_id) AS session, argMax(r.request_id, (r.ts, r.request_id)) AS request_id
FROM requests AS r
WHERE {_FURTHER}
GROUP BY session
"""
# `prompt` has the messages one after the other, each behind its role. One of a million characters may have lost its
# end.
_ROLES = "system|developer|user|assistant|tool|function|unknown"
_ROLE = re.compile(rf"\n({_ROLES}): ")
_TEXT_CHARACTERS = 4000
_CUT_AT = 1_000_000
_TEXTS = rf"""
SELECT
    p.request_id AS request_id,
    extractAll(concat('\n', p.prompt), '\n({_ROLES}): ') AS roles,
    arrayPopFront(splitByRegexp('\n(?:{_ROLES}): ', concat('\n', p.prompt))) AS texts,
    roles[-1] = 'user' AS is_last,
    leftUTF8(arrayLast((text, role) -> role = 'user', texts, roles), {_TEXT_CHARACTERS}) AS text
FROM payloads AS p
PREWHERE {KEYED}
WHERE lengthUTF8(p.prompt) < {_CUT_AT} AND empty(p.shared)
"""
_SHARING = f"""
SELECT request_id, prompt, shared FROM payloads PREWHERE {KEYED} WHERE notEmpty(shared)
"""


def answer_counts(window: RolloutWindow) -> Mapping[str, AnswerCounts]:
    """Returns the counts of each arm with answers. Raises the errors of the store."""
    rows = client.query(_COUNTS, window.parameters(), row=AnswerCounts, name="variants.signals.counts")
    return {row.variant: row for row in rows}


def sampled_answers(window: RolloutWindow, counts: Mapping[str, AnswerCounts]) -> Iterator[Sampled]:
    """Yields a sample of each arm's answers that are in a session and old enough. Raises the errors of the store."""
    params = window.parameters()
    limits = {f"{arm}_limit": _limit(counts.get(arm, AnswerCounts(arm)).drawn_from) for arm in ("target", "baseline")}
    answers = visible.query(_ANSWERS, {**params, **limits}, row=_Answer, name="variants.signals.answers")
    if not answers:
        return
    params["sessions"] = sorted({one.session for one in answers})
    lasts = visible.query(_LAST, params, row=_Last, name="variants.signals.last")
    last = {one.session: one.request_id for one in lasts}
    again = _asked_again([one for one in answers if one.has_text], params)
    for one in answers:
        yield Sampled(
            one.variant,
            one.session,
            asked_again=one.request_id in again if one.has_text else None,
            left=last.get(one.session) == one.request_id if one.is_settled else None,
        )


def _limit(count: int) -> int:
    return _MAX_HASH if count <= SAMPLE else _MAX_HASH * SAMPLE // count


def _asked_again(answers: Sequence[_Answer], params: Mapping[str, Any]) -> set[UUID]:
    if not answers:
        return set()
    given = {
        **params,
        "asked_in": [one.session for one in answers],
        "ended": [one.ended_at for one in answers],
        "places": list(range(len(answers))),
    }
    following = visible.query(_NEXT, given, row=_Next, name="variants.signals.next")
    pairs = [(answers[one.place], one) for one in following]
    texts = _texts(params["project"], {one.request_id: one.ts for pair in pairs for one in pair})
    return {one.request_id for one, other in pairs if _is_same(texts.get(one.request_id), texts.get(other.request_id))}


def _is_same(first: _Text | None, second: _Text | None) -> bool:
    # The last message of a step of a tool is the tool's: the user has said nothing new.
    if first is None or second is None or not second.is_last:
        return False
    return word_overlap(first.text, second.text) >= SAME_FROM


def _texts(project_id: UUID, arrived: Mapping[UUID, datetime]) -> Mapping[UUID, _Text]:
    keys, found = [RequestCursor(ts, request_id) for request_id, ts in arrived.items()], dict[UUID, _Text]()
    for some in chunks(sorted(keys, key=lambda key: key.ts)):
        sql = f"SELECT request_id, is_last, text FROM ({_TEXTS})"
        rows = visible.query(sql, keyed(project_id, some), row=_Text, name="variants.signals.texts")
        found.update({row.request_id: row for row in rows})
        sharing = visible.query(_SHARING, keyed(project_id, some), row=_Sharing, name="variants.signals.sharing")
        parts = parts_of(project_id, [row.shared for row in sharing], "prompt")
        prompts = {
            row.request_id: "".join((*(parts.get(one, "") for one in row.shared), row.prompt)) for row in sharing
        }
        found.update({one: _text(one, prompt) for one, prompt in prompts.items() if len(prompt) < _CUT_AT})
    return found


def _text(request_id: UUID, prompt: str) -> _Text:
    _, *found = _ROLE.split(f"\n{prompt}")
    roles, texts = found[::2], found[1::2]
    last = next((text for role, text in zip(reversed(roles), reversed(texts), strict=True) if role == "user"), "")
    return _Text(request_id, is_last=roles[-1:] == ["user"], text=last[:_TEXT_CHARACTERS])


_UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)
# In scripts without spaces between words each character is a word.
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_])+")


def word_overlap(first: str, second: str) -> float:
    """Returns the share of the words of both texts that the other one has too, from 0 to 1, without regard to their
    order or letter case. A word that occurs several times counts as often. A text without words has nothing in common
    with any."""
    words, others = _words(first), _words(second)
    count = words.total() + others.total()
    return 2 * (words & others).total() / count if count else 0.0


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.casefold()))
