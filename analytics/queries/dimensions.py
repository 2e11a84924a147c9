from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from analytics.queries.rollup_ranges import (
    HOURS,
    MINUTES,
    SESSION_DAYS,
    SPEND_HOURS,
    USER_DAYS,
    USER_HOURS,
    Key,
    Rollup,
    plain_rollups,
    same,
)
from analytics.queries.usage import Interval


class Dimension(StrEnum):
    MODEL = "model"
    PROVIDER = "provider"
    DEPLOYMENT = "deployment"
    USER = "user"
    API_KEY = "api_key"
    TEAM = "team"
    SESSION = "session"
    PROMPT = "prompt"
    PROMPT_VERSION = "prompt_version"
    SOURCE = "source"
    OPERATION = "operation"
    METADATA = "metadata"


@dataclass(frozen=True)
class Source:
    """The place of a dimension's figures: the text that is its key, and its rollups by length of interval, coarse
    before fine.

    Without a rollup the rows of requests are read; without `days`, the rollups for plain sums. `of_keys` is a condition
    that an index of the rollups answers for the array `keys`.
    """

    key: Key
    minutes: Sequence[Rollup]
    hours: Sequence[Rollup]
    days: Sequence[Rollup] | None = None
    where_request: str = "1"
    of_keys: str = "1"


_NO_PROMPT = "t.prompt_config_id = toUUID('00000000-0000-0000-0000-000000000000')"
DEPLOYMENT = "toString(if(t.deployment = '', t.provider, t.deployment))"
_BY_MODEL = (MINUTES,), (HOURS,)
_BY_SPEND = (SPEND_HOURS,), (SPEND_HOURS,)

# A request without a user, key, team, prompt or provider is counted under the empty key; one without a session is left
# out.
_SOURCES: Mapping[Dimension, Source] = {
    Dimension.MODEL: Source(same("toString(t.model)"), *_BY_MODEL),
    Dimension.PROVIDER: Source(same("toString(t.provider)"), *_BY_MODEL),
    Dimension.OPERATION: Source(same("if(t.operation = '', 'chat', toString(t.operation))"), *_BY_MODEL),
    Dimension.USER: Source(same("t.user_id"), (), (USER_HOURS,), (USER_DAYS, USER_HOURS)),
    Dimension.API_KEY: Source(same("if(t.api_key_id = 0, '', toString(t.api_key_id))"), (), *_BY_SPEND),
    Dimension.TEAM: Source(same("if(t.team_id = 0, '', toString(t.team_id))"), (), *_BY_SPEND),
    Dimension.SESSION: Source(
        same("t.session_id"),
        (),
        (),
        (SESSION_DAYS,),
        where_request="t.session_id != ''",
        of_keys="t.session_hash IN (SELECT cityHash64(arrayJoin({keys:Array(String)})))",
    ),
    Dimension.PROMPT: Source(same(f"if({_NO_PROMPT}, '', toString(t.prompt_config_id))"), (MINUTES,), *_BY_SPEND),
    Dimension.PROMPT_VERSION: Source(
        same(f"if({_NO_PROMPT}, '', concat(toString(t.prompt_config_id), '/', toString(t.prompt_version)))"),
        (MINUTES,),
        *_BY_SPEND,
    ),
    # No rollup has the deployment: the rows of the range are read. One without a name is called like its provider.
    Dimension.DEPLOYMENT: Source(same(DEPLOYMENT), (), (), ()),
    # No rollup has the attributes, so that the rows of the range are read.
    Dimension.METADATA: Source(same("t.attributes[{{tag:String}}]"), (), (), ()),
    Dimension.SOURCE: Source(same("toString(t.source)"), (), *_BY_SPEND),
}


def source_of(dimension: Dimension) -> Source:
    return _SOURCES[dimension]


def rollups_of(
    dimension: Dimension, start: datetime, end: datetime, interval: Interval = Interval.DAY
) -> Sequence[Rollup]:
    """The rollups for figures of a range by the interval; use the day for sums over the whole range."""
    source = _SOURCES[dimension]
    if interval is Interval.MINUTE:
        return source.minutes
    if interval is Interval.HOUR:
        return source.hours
    return plain_rollups(start, end) if source.days is None else source.days
