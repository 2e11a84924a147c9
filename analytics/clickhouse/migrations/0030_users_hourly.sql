-- Per hour and user, in the order of hours: what a range has of its first and of its last day. Only whole days of users
-- were known, so up to two days of requests were read beside them: of ten million requests 150,000 rows, for which users
-- over 30 days cost as much again as for 30 whole days. Ten million requests are a million rows here, twice as many as
-- days of users, and the hours of a day lie together.
-- `ingest` and `anonymised` are away while the past is filled in, so that no request is counted twice or left out:
-- records wait in the spool meanwhile, and deletions are tried again.
-- Every statement can run again: what is filled is emptied first.
-- Reverse: drop both views, then the table.
RENAME TABLE IF EXISTS ingest_closed TO ingest;

RENAME TABLE IF EXISTS anonymised_closed TO anonymised;

CREATE TABLE IF NOT EXISTS users_hourly (
    project_id UUID, hour DateTime('UTC'), user_id String, drop_date Date,
    first_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')), last_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    requests SimpleAggregateFunction(sum, UInt64), errors SimpleAggregateFunction(sum, UInt64),
    cancelled SimpleAggregateFunction(sum, UInt64), unpriced SimpleAggregateFunction(sum, UInt64),
    prompt_tokens SimpleAggregateFunction(sum, UInt64), completion_tokens SimpleAggregateFunction(sum, UInt64),
    cache_read_tokens SimpleAggregateFunction(sum, UInt64), cache_write_tokens SimpleAggregateFunction(sum, UInt64),
    cost_usd SimpleAggregateFunction(sum, Decimal(38, 10)), latency_sum_ms SimpleAggregateFunction(sum, UInt64),
    models SimpleAggregateFunction(groupUniqArrayArray, Array(String)), session_set AggregateFunction(uniqExact, UInt64)
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, hour, user_id, drop_date) TTL drop_date
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- Inputs are qualified (i.): an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS users_hourly_mv TO users_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), i.session_id != '' AND i.user_id != '') AS session_set
FROM ingest AS i GROUP BY project_id, hour, user_id, drop_date;

-- Requests that lost their user join those of none, as in the days of users (migration 0019).
CREATE MATERIALIZED VIEW IF NOT EXISTS anonymised_user_hours_mv TO users_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, '' AS user_id, drop_date, min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(toUInt64(0), false) AS session_set
FROM anonymised AS i WHERE i.had_user GROUP BY project_id, hour, drop_date;

RENAME TABLE IF EXISTS ingest TO ingest_closed;

RENAME TABLE IF EXISTS anonymised TO anonymised_closed;

TRUNCATE TABLE users_hourly;

-- The rows come by project and time, so only one hour is in memory at once.
INSERT INTO users_hourly (
    project_id, hour, user_id, drop_date, first_at, last_at, requests, errors, cancelled, unpriced, prompt_tokens,
    completion_tokens, cache_read_tokens, cache_write_tokens, cost_usd, latency_sum_ms, models, session_set
)
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, user_id, drop_date,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), i.session_id != '' AND i.user_id != '') AS session_set
FROM requests AS i GROUP BY project_id, hour, user_id, drop_date
SETTINGS optimize_aggregation_in_order = 1, max_threads = 2, max_execution_time = 0, insert_deduplicate = 0,
    max_partitions_per_insert_block = 0;

RENAME TABLE IF EXISTS anonymised_closed TO anonymised;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
