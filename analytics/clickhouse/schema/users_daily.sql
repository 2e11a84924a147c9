-- Figures per day and user. The empty user has a row too, so that sums over users equal sums over requests. The order
-- within a month is that of the users' names and not of days: the rows of the twenty users of a page lie together, in
-- small blocks, which halves the cost of the users endpoint. The set of sessions counts exactly; a sketch was off by
-- one from a few hundred sessions on. Sessions are hashes of 64 bits: among a million, the chance that two are taken
-- for one is 1 in 30 million. The sessions of the empty user are counted in session_days.
CREATE TABLE IF NOT EXISTS users_daily (
    project_id UUID, day Date, user_id String, drop_date Date, user_hash UInt64 MATERIALIZED cityHash64(user_id),
    first_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    last_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    requests SimpleAggregateFunction(sum, UInt64), errors SimpleAggregateFunction(sum, UInt64),
    cancelled SimpleAggregateFunction(sum, UInt64), unpriced SimpleAggregateFunction(sum, UInt64),
    prompt_tokens SimpleAggregateFunction(sum, UInt64), completion_tokens SimpleAggregateFunction(sum, UInt64),
    cache_read_tokens SimpleAggregateFunction(sum, UInt64), cache_write_tokens SimpleAggregateFunction(sum, UInt64),
    cost_usd SimpleAggregateFunction(sum, Decimal(38, 10)), latency_sum_ms SimpleAggregateFunction(sum, UInt64),
    models SimpleAggregateFunction(groupUniqArrayArray, Array(String)), session_set AggregateFunction(uniqExact, UInt64),
    operation LowCardinality(String),
    batched SimpleAggregateFunction(sum, UInt64)
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(day) PRIMARY KEY (project_id, user_id, day, drop_date)
ORDER BY (project_id, user_id, day, drop_date, operation) TTL drop_date
SETTINGS index_granularity = 1024, min_compress_block_size = 8192, ttl_only_drop_parts = 0,
    non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- The view qualifies its inputs (i.), because an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS users_daily_mv TO users_daily AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), i.session_id != '' AND i.user_id != '') AS session_set
FROM ingest AS i GROUP BY project_id, day, user_id, drop_date, operation;

-- Requests that have lost the name of their user join the row of the empty user.
CREATE MATERIALIZED VIEW IF NOT EXISTS anonymised_users_mv TO users_daily AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, '' AS user_id, drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(toUInt64(0), false) AS session_set
FROM anonymised AS i WHERE i.had_user GROUP BY project_id, day, drop_date, operation;
