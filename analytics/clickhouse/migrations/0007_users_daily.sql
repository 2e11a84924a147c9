-- Per day and user. The empty user is kept: sums over users then equal sums over requests.
-- Reverse: drop the view, then the table, and fill both again from requests.
-- Skipped when: SELECT count() = 1 FROM system.columns WHERE database = currentDatabase() AND table = 'users_daily' AND name = 'session_set'
CREATE TABLE IF NOT EXISTS users_daily (
    project_id UUID, day Date, user_id String, drop_date Date,
    requests SimpleAggregateFunction(sum, UInt64), errors SimpleAggregateFunction(sum, UInt64),
    cancelled SimpleAggregateFunction(sum, UInt64), unpriced SimpleAggregateFunction(sum, UInt64),
    prompt_tokens SimpleAggregateFunction(sum, UInt64), completion_tokens SimpleAggregateFunction(sum, UInt64),
    cache_read_tokens SimpleAggregateFunction(sum, UInt64), cache_write_tokens SimpleAggregateFunction(sum, UInt64),
    cost_usd SimpleAggregateFunction(sum, Decimal(38, 10)), latency_sum_ms SimpleAggregateFunction(sum, UInt64),
    sessions AggregateFunction(uniq, String), models SimpleAggregateFunction(groupUniqArrayArray, Array(String))
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, day, user_id, drop_date) TTL drop_date
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- Inputs are qualified (i.): an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS users_daily_mv TO users_daily AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    uniqStateIf(i.session_id, i.session_id != '') AS sessions, groupUniqArrayIf(toString(i.model), i.model != '') AS models
FROM ingest AS i GROUP BY project_id, day, user_id, drop_date;
