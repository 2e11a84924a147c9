from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate
from pathlib import Path
from string import Template
from typing import Any
from uuid import UUID

from django.conf import settings

from analytics.request_log.record import DEFAULT_RETENTION_DAYS
from analytics.traffic.catalogue import MODELS, token_prices
from analytics.traffic.rhythm import Slice
from analytics.traffic.texts import SYLLABLES, WORDS, Texts

_FOLDER = Path(__file__).parent
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_ANSWER_TIME = timedelta(minutes=3)  # A request that arrives later would end after the period.

# A random number has 53 bits, which a double holds exactly, so that it is never rounded up to 1.
_UNIFORM = r"(bitShiftRight(sipHash64(\1), 11) / 9007199254740992)"
_NORMAL = r"(sqrt(-2 * log(1 - UNIFORM(\1, 101))) * cos(6.283185307179586 * UNIFORM(\1, 102)))"


# This expression is `texts.word` of a rank, in SQL.
_WORD = (
    rf"concat({{beginnings:Array(String)}}[1 + \1 % {len(SYLLABLES)}],"
    rf" {{syllables:Array(String)}}[1 + intDiv(\1, {len(SYLLABLES)})])"
)
_SHORTHANDS = (
    (r"WORD\((\w+)\)", _WORD),
    (r"NORMAL\(([^()]+)\)", _NORMAL),
    (r"UNIFORM\(([^()]+)\)", _UNIFORM),
)


@dataclass(frozen=True, slots=True)
class Period:
    """Sessions that begin at `texts_from` or later have texts."""

    since: datetime
    until: datetime
    texts_from: datetime


def statement(what: str, drawn: str, *, texts: str) -> str:
    history = Template(_sql("history")).substitute(drawn=_sql(drawn), texts=texts)
    sql = Template(_sql(what)).substitute(history=history)
    for pattern, replacement in _SHORTHANDS:
        sql = re.sub(pattern, replacement, sql)
    return sql


def constants(
    *, project: UUID, salt: int, users: int, api_keys: list[int], texts: Texts, period: Period
) -> Mapping[str, Any]:
    prices = token_prices()
    return {
        "project": project,
        "salt": salt,
        "users": users,
        "api_keys": api_keys,
        "since": microseconds(period.since),
        "until": microseconds(period.until - _MAX_ANSWER_TIME),
        "retention_days": DEFAULT_RETENTION_DAYS,
        "telemetry_days": settings.TELEMETRY_RETENTION_DAYS,
        "firsts": list(texts.firsts),
        "lengths": list(texts.lengths),
        "words": WORDS,
        "beginnings": [syllable.capitalize() for syllable in SYLLABLES],
        "syllables": list(SYLLABLES),
        "providers": [model.provider for model in MODELS],
        "models": [model.name for model in MODELS],
        "shares": _cumulated_shares(),
        "fallbacks": [1 + _position(model.fallback) for model in MODELS],
        "thinks": [int(model.thinks) for model in MODELS],
        "waits": [model.wait_ms for model in MODELS],
        "paces": [model.token_ms for model in MODELS],
        "caching": [price.caching for price in prices],
        "input_units": [price.input for price in prices],
        "output_units": [price.output for price in prices],
        "cache_read_units": [price.cache_read for price in prices],
        "cache_write_units": [price.cache_write for price in prices],
    }


def of_slice(one: Slice) -> Mapping[str, Any]:
    return {
        "slice": one.number,
        "requests": one.requests,
        "borders": [microseconds(border) for border in one.borders],
        "cumulative": list(one.cumulative),
        "with_texts": one.with_texts,
    }


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


@cache
def _sql(name: str) -> str:
    text = (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    return re.sub(r"^\s*--.*\n", "", text, flags=re.MULTILINE).strip()


def _cumulated_shares() -> list[float]:
    total = sum(model.share for model in MODELS)
    return [share / total for share in accumulate(model.share for model in MODELS)]


def _position(name: str) -> int:
    return next(index for index, model in enumerate(MODELS) if model.name == name)
