-- How many requests of each kind there were a day, by everything that lists of requests are filtered by and that has few
-- values. A list counts what matches, and of 10 million requests it read two columns for it: 59 ms of CPU for those of a
-- model, where ninety days of kinds are 12,000 rows. Whatever the values are, it has no more rows than `requests`.
-- `ingest` is away while the past is filled in, so that no record is counted twice or left out; shippers wait for it.
-- Every statement can run again: what is filled is emptied first.
-- Reverse: drop the view, then the table.
RENAME TABLE IF EXISTS ingest_closed TO ingest;

CREATE TABLE IF NOT EXISTS request_kinds (
    project_id UUID, day Date, outcome LowCardinality(String), status_code UInt16, source LowCardinality(String),
    provider LowCardinality(String), model LowCardinality(String), requested_model LowCardinality(String),
    error_type LowCardinality(String), error_code LowCardinality(String),
    prompt_config_id UUID, prompt_version UInt32, rollout_id UUID, variant LowCardinality(String), drop_date Date,
    requests SimpleAggregateFunction(sum, UInt64)
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
ORDER BY (
    project_id, day, outcome, status_code, source, provider, model, requested_model, error_type, error_code,
    prompt_config_id, prompt_version, rollout_id, variant, drop_date
) TTL drop_date
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS request_kinds_mv TO request_kinds AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, outcome, status_code, source, provider, model, requested_model, error_type,
    error_code, prompt_config_id, prompt_version, rollout_id, variant,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date, count() AS requests
FROM ingest AS i
GROUP BY
    project_id, day, outcome, status_code, source, provider, model, requested_model, error_type, error_code,
    prompt_config_id, prompt_version, rollout_id, variant, drop_date;

RENAME TABLE IF EXISTS ingest TO ingest_closed;

TRUNCATE TABLE request_kinds;

-- The rows come by project and time, so only one day is in memory at once.
INSERT INTO request_kinds
SELECT
    project_id, toDate(r.ts, 'UTC') AS day, outcome, status_code, source, provider, model, requested_model, error_type,
    error_code, prompt_config_id, prompt_version, rollout_id, variant, drop_date, count() AS requests
FROM requests AS r
GROUP BY
    project_id, day, outcome, status_code, source, provider, model, requested_model, error_type, error_code,
    prompt_config_id, prompt_version, rollout_id, variant, drop_date
SETTINGS optimize_aggregation_in_order = 1, max_threads = 2, max_execution_time = 0, insert_deduplicate = 0,
    max_partitions_per_insert_block = 0;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
