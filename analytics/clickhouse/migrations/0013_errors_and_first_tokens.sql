-- Errors by kind and day, and the time to the first token per hour and day, of which only minutes knew.
-- `ingest` is away while the past is filled in, so that no record is counted twice or left out; shippers wait for it.
-- Every statement can run again: what is filled is emptied first.
-- Reverse: drop errors_daily_mv and errors_daily; give the other two views their former queries, and drop the columns.
RENAME TABLE IF EXISTS ingest_closed TO ingest;

CREATE TABLE IF NOT EXISTS errors_daily (
    project_id UUID, day Date, provider LowCardinality(String), model LowCardinality(String),
    error_type LowCardinality(String), error_code LowCardinality(String), status_code UInt16, drop_date Date,
    requests SimpleAggregateFunction(sum, UInt64), last_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, day, provider, model, error_type, error_code, status_code, drop_date) TTL drop_date
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- Inputs are qualified (i.): an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS errors_daily_mv TO errors_daily AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, provider, model, error_type, error_code, status_code,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date, count() AS requests, max(i.ts) AS last_at
FROM ingest AS i WHERE i.outcome IN ('error', 'interrupted')
GROUP BY project_id, day, provider, model, error_type, error_code, status_code, drop_date;

ALTER TABLE requests_hourly
    ADD COLUMN IF NOT EXISTS streamed SimpleAggregateFunction(sum, UInt64),
    ADD COLUMN IF NOT EXISTS ttft_q AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32);

ALTER TABLE requests_daily
    ADD COLUMN IF NOT EXISTS streamed SimpleAggregateFunction(sum, UInt64),
    ADD COLUMN IF NOT EXISTS ttft_q AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32);

ALTER TABLE requests_hourly_mv MODIFY QUERY
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, provider, model, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestState(0.5, 0.95, 0.99)(i.latency_ms) AS latency_q, countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest AS i GROUP BY project_id, hour, provider, model, drop_date;

ALTER TABLE requests_daily_mv MODIFY QUERY
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, provider, model, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestState(0.5, 0.95, 0.99)(i.latency_ms) AS latency_q, countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest AS i GROUP BY project_id, day, provider, model, drop_date;

RENAME TABLE IF EXISTS ingest TO ingest_closed;

TRUNCATE TABLE errors_daily;

INSERT INTO errors_daily
SELECT
    project_id, toDate(r.ts, 'UTC') AS day, provider, model, error_type, error_code, status_code, drop_date,
    count() AS requests, max(r.ts) AS last_at
FROM requests AS r WHERE r.outcome IN ('error', 'interrupted')
GROUP BY project_id, day, provider, model, error_type, error_code, status_code, drop_date
SETTINGS optimize_aggregation_in_order = 1, max_threads = 2, max_execution_time = 0, insert_deduplicate = 0,
    max_partitions_per_insert_block = 0;

ALTER TABLE requests_hourly CLEAR COLUMN streamed, CLEAR COLUMN ttft_q SETTINGS mutations_sync = 2;

ALTER TABLE requests_daily CLEAR COLUMN streamed, CLEAR COLUMN ttft_q SETTINGS mutations_sync = 2;

-- Rows that hold nothing else merge with those that are there.
INSERT INTO requests_hourly (project_id, hour, provider, model, drop_date, streamed, ttft_q)
SELECT
    project_id, toStartOfHour(r.ts, 'UTC') AS hour, provider, model, drop_date, count() AS streamed,
    quantilesTDigestState(0.5, 0.95, 0.99)(r.ttft_ms) AS ttft_q
FROM requests AS r WHERE r.ttft_ms > 0 GROUP BY project_id, hour, provider, model, drop_date
SETTINGS optimize_aggregation_in_order = 1, max_threads = 2, max_execution_time = 0, insert_deduplicate = 0,
    max_partitions_per_insert_block = 0;

INSERT INTO requests_daily (project_id, day, provider, model, drop_date, streamed, ttft_q)
SELECT
    project_id, toDate(r.ts, 'UTC') AS day, provider, model, drop_date, count() AS streamed,
    quantilesTDigestState(0.5, 0.95, 0.99)(r.ttft_ms) AS ttft_q
FROM requests AS r WHERE r.ttft_ms > 0 GROUP BY project_id, day, provider, model, drop_date
SETTINGS optimize_aggregation_in_order = 1, max_threads = 2, max_execution_time = 0, insert_deduplicate = 0,
    max_partitions_per_insert_block = 0;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
