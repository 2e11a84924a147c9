-- Figures per session, day and user, written with each request, so that a session is listed within a second of its
-- first request. The order is that of days: a list reads back from the newest day until its page is full, and the rows
-- of a page lie together. Sessions are grouped and found by hashes of 64 bits: among a million, the chance that two are
-- taken for one is 1 in 30 million. Small granules in small blocks halve the cost of a page and of a session of weeks.
CREATE TABLE IF NOT EXISTS session_days (
    project_id UUID, day Date, session_hash UInt64, session_id String, user_id String, drop_date Date,
    started_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    ended_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    requests SimpleAggregateFunction(sum, UInt64), errors SimpleAggregateFunction(sum, UInt64),
    cancelled SimpleAggregateFunction(sum, UInt64), unpriced SimpleAggregateFunction(sum, UInt64),
    prompt_tokens SimpleAggregateFunction(sum, UInt64), completion_tokens SimpleAggregateFunction(sum, UInt64),
    cache_read_tokens SimpleAggregateFunction(sum, UInt64), cache_write_tokens SimpleAggregateFunction(sum, UInt64),
    cost_usd SimpleAggregateFunction(sum, Decimal(38, 10)), latency_sum_ms SimpleAggregateFunction(sum, UInt64),
    models SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    providers SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    operation LowCardinality(String),
    batched SimpleAggregateFunction(sum, UInt64),
    INDEX i_session session_hash TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
PRIMARY KEY (project_id, day, session_hash, session_id, user_id, drop_date)
ORDER BY (project_id, day, session_hash, session_id, user_id, drop_date, operation) TTL drop_date
SETTINGS index_granularity = 512, min_compress_block_size = 8192, ttl_only_drop_parts = 0,
    non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- The view qualifies its inputs (i.), because an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS session_days_mv TO session_days AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, cityHash64(i.session_id) AS session_hash, session_id, user_id,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, min(i.ts) AS started_at, max(i.ts) AS ended_at,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    groupUniqArrayIf(toString(i.provider), i.provider != '') AS providers
FROM ingest AS i WHERE i.session_id != ''
GROUP BY project_id, day, session_hash, session_id, user_id, drop_date, operation;
