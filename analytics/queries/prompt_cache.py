"""The vendors' prompt caches by model and version of a prompt: what they saved, and what a repeated prefix missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from analytics.clickhouse import client

# A vendor keeps a prefix for five minutes after its last use, and none of fewer tokens.
_KEPT_SECONDS: Final = 300
_MIN_TOKENS: Final = 1024


@dataclass(frozen=True)
class PromptCacheRow:
    """The requests of a model at a provider with a version of a prompt; those without a prompt have the zero UUID.

    `saved_usd` is what the read tokens would have cost as fresh input, less what reads and writes of the cache cost and
    the fresh price of what was written; it is negative where writes cost more than reads saved. `missed_tokens` were in
    a request's prompt although the session's request before it, to the same model within five minutes and no longer
    than this one, had sent as many, and were not read from the cache.
    """

    provider: str
    model: str
    prompt_config_id: UUID
    prompt_version: int
    requests: int
    prompt_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    saved_usd: Decimal
    missed_tokens: int


_SQL = f"""SELECT
    toString(r.provider) AS provider, toString(r.model) AS model, r.prompt_config_id AS prompt_config_id,
    r.prompt_version AS prompt_version, count() AS requests, sum(r.sent) AS prompt_tokens,
    sum(r.read) AS cache_read_tokens,
    sum(r.written) AS cache_write_tokens, sum(toDecimal128(r.saved, 10)) AS saved_usd, sum(r.missed) AS missed_tokens
FROM (
    SELECT
        t.provider AS provider, t.model AS model, t.prompt_config_id AS prompt_config_id,
        t.prompt_version AS prompt_version, toUInt64(t.prompt_tokens) AS sent,
        toUInt64(t.cache_read_tokens) AS read, toUInt64(t.cache_write_tokens) AS written,
        if(t.cost_known AND sent > read + written,
            toFloat64(t.cost_input_usd) / (sent - read - written) * (read + written)
            - toFloat64(t.cost_cache_read_usd) - toFloat64(t.cost_cache_write_usd), 0) AS saved,
        lagInFrame(toUInt64(t.prompt_tokens), 1, toUInt64(0)) OVER before AS previous,
        lagInFrame(t.ts, 1, toDateTime64(0, 6, 'UTC')) OVER before AS previous_ts,
        if(t.session_id != '' AND previous >= {_MIN_TOKENS} AND sent >= previous AND read < previous
            AND dateDiff('second', previous_ts, t.ts) <= {_KEPT_SECONDS}, previous - read, 0) AS missed
    FROM requests AS t
    WHERE t.project_id = {{project:UUID}} AND t.ts >= {{start:DateTime64(6, 'UTC')}}
        AND t.ts < {{end:DateTime64(6, 'UTC')}} AND t.outcome = 'success'
        AND t.prompt_tokens > 0 AND t.cache_status != 'hit'
    WINDOW before AS (
        PARTITION BY t.session_id, t.provider, t.model, t.prompt_config_id, t.prompt_version ORDER BY t.ts, t.request_id
        ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS r
GROUP BY r.provider, r.model, r.prompt_config_id, r.prompt_version
ORDER BY saved_usd DESC, missed_tokens DESC, provider, model, prompt_config_id, prompt_version"""


def list_prompt_cache(project_id: UUID, start: datetime, end: datetime) -> Sequence[PromptCacheRow]:
    """Returns the rows of all models and versions, those that saved most first."""
    params = {"project": project_id, "start": start, "end": end}
    return client.query(_SQL, params, row=PromptCacheRow, name="metrics.prompt_cache")
