-- Figures per day and model, for cost by day and the percentiles of long ranges. Granules of 256 rows, as in
-- requests_hourly. `batched` is as in requests_minute.
CREATE TABLE IF NOT EXISTS requests_daily (
    project_id UUID, day Date, provider LowCardinality(String), model LowCardinality(String), drop_date Date,
    requests SimpleAggregateFunction(sum, UInt64), errors SimpleAggregateFunction(sum, UInt64),
    cancelled SimpleAggregateFunction(sum, UInt64), unpriced SimpleAggregateFunction(sum, UInt64),
    prompt_tokens SimpleAggregateFunction(sum, UInt64), completion_tokens SimpleAggregateFunction(sum, UInt64),
    cache_read_tokens SimpleAggregateFunction(sum, UInt64), cache_write_tokens SimpleAggregateFunction(sum, UInt64),
    cost_usd SimpleAggregateFunction(sum, Decimal(38, 10)), latency_sum_ms SimpleAggregateFunction(sum, UInt64),
    latency_q AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    streamed SimpleAggregateFunction(sum, UInt64),
    ttft_q AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    operation LowCardinality(String),
    batched SimpleAggregateFunction(sum, UInt64)
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
PRIMARY KEY (project_id, day, provider, model, drop_date)
ORDER BY (project_id, day, provider, model, drop_date, operation) TTL drop_date
SETTINGS index_granularity = 256, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- The view qualifies its inputs (i.), because an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS requests_daily_mv TO requests_daily AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, provider, model, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.latency_ms, i.source != 'batch') AS latency_q,
    countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest AS i GROUP BY project_id, day, provider, model, drop_date, operation;
