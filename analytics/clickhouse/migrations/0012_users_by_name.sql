-- Users in the order of their names within months, not of days: the rows of the twenty users of a page lie together, in
-- small blocks, which halves what the users endpoint costs. Their sessions become a set, counted exactly; the former
-- sketch of hashes was off by one from a few hundred sessions on. Sessions are hashes of 64 bits: among a million the
-- chance that two are taken for one is 1 in 30 million. Those of no user are left to session_days.
-- `ingest` is away while the table is filled anew, so that no record is counted twice or left out; shippers wait for it.
-- Reverse: the table and view of 0007, filled from requests.
-- Skipped when: SELECT count() = 2 FROM system.tables WHERE database = currentDatabase() AND (name = 'ingest' OR (name = 'users_daily' AND partition_key = 'toYYYYMM(day)'))
RENAME TABLE IF EXISTS ingest_closed TO ingest;

ALTER TABLE users_daily
    ADD COLUMN IF NOT EXISTS first_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    ADD COLUMN IF NOT EXISTS last_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    ADD COLUMN IF NOT EXISTS session_set AggregateFunction(uniqExact, UInt64);

-- Inputs are qualified (i.): an alias of the same name would win otherwise.
ALTER TABLE users_daily_mv MODIFY QUERY
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), i.session_id != '' AND i.user_id != '') AS session_set
FROM ingest AS i GROUP BY project_id, day, user_id, drop_date;

RENAME TABLE IF EXISTS ingest TO ingest_closed;

DROP TABLE IF EXISTS users_by_name SYNC;

CREATE TABLE users_by_name (
    project_id UUID, day Date, user_id String, drop_date Date, user_hash UInt64 MATERIALIZED cityHash64(user_id),
    first_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')), last_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    requests SimpleAggregateFunction(sum, UInt64), errors SimpleAggregateFunction(sum, UInt64),
    cancelled SimpleAggregateFunction(sum, UInt64), unpriced SimpleAggregateFunction(sum, UInt64),
    prompt_tokens SimpleAggregateFunction(sum, UInt64), completion_tokens SimpleAggregateFunction(sum, UInt64),
    cache_read_tokens SimpleAggregateFunction(sum, UInt64), cache_write_tokens SimpleAggregateFunction(sum, UInt64),
    cost_usd SimpleAggregateFunction(sum, Decimal(38, 10)), latency_sum_ms SimpleAggregateFunction(sum, UInt64),
    models SimpleAggregateFunction(groupUniqArrayArray, Array(String)), session_set AggregateFunction(uniqExact, UInt64)
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(day)
ORDER BY (project_id, user_id, day, drop_date) TTL drop_date
SETTINGS index_granularity = 1024, min_compress_block_size = 8192, ttl_only_drop_parts = 0,
    non_replicated_deduplication_window = 10000;

-- The rows come by project and time, so only one day is in memory at once.
INSERT INTO users_by_name (
    project_id, day, user_id, drop_date, first_at, last_at, requests, errors, cancelled, unpriced, prompt_tokens,
    completion_tokens, cache_read_tokens, cache_write_tokens, cost_usd, latency_sum_ms, models, session_set
)
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, user_id, drop_date,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), i.session_id != '' AND i.user_id != '') AS session_set
FROM requests AS i GROUP BY project_id, day, user_id, drop_date
SETTINGS optimize_aggregation_in_order = 1, max_threads = 2, max_execution_time = 0, insert_deduplicate = 0,
    max_partitions_per_insert_block = 0;

EXCHANGE TABLES users_by_name AND users_daily;

DROP TABLE users_by_name SYNC;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
