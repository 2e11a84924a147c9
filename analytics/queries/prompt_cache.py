from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.summed import Scope

# A vendor keeps a prefix for five minutes after its last use, and none of fewer tokens.
_KEPT_SECONDS: Final = 300
_MIN_TOKENS: Final = 1024


@dataclass(frozen=True)
class PromptCacheRow:
    """The requests of a model at a provider with a version of a prompt; those without a prompt have neither id.

    `saved_usd` is the fresh price of the tokens that were read and written, less the cost of these reads and writes;
    it is negative if writes cost more than reads saved. `missed_tokens` are the part of the session's previous prompt
    that was not read from the cache, if that prompt went to the same model within five minutes and was no longer.
    """

    provider: str
    model: str
    prompt_config_id: UUID | None
    prompt_version: int | None
    request_count: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    saved_usd: Decimal
    missed_tokens: int


@dataclass(frozen=True)
class PromptCacheFigures(PromptCacheRow):
    """`missed_usd` is null where the model has no known price of reads."""

    missed_usd: Decimal | None


_SQL = f"""SELECT
    toString(r.provider) AS provider, toString(r.model) AS model,
    nullIf(r.prompt_config_id, toUUID('{UUID(int=0)}')) AS prompt_config_id,
    nullIf(r.prompt_version, 0) AS prompt_version, count() AS request_count,
    sum(r.sent) AS input_tokens, sum(r.read) AS cache_read_tokens,
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
ORDER BY saved_usd DESC, missed_tokens DESC, provider, model, r.prompt_config_id, r.prompt_version"""


def list_prompt_cache(scope: Scope) -> Sequence[PromptCacheRow]:
    params = {"project": scope.project_id, "start": scope.start, "end": scope.end}
    return client.query(_SQL, params, row=PromptCacheRow, name="metrics.prompt_cache")
