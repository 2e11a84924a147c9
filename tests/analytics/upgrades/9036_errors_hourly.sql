-- A table of figures that is filled from the requests that are there, as an example and for tests.
-- `ingest` is away while the past is filled in, so that no request is counted twice or left out.
-- Every statement can run again, because the table is emptied before it is filled.
-- Reverse: drop the view, then the table.
RENAME TABLE IF EXISTS ingest_closed TO ingest;

CREATE TABLE IF NOT EXISTS errors_hourly (
    project_id UUID, hour DateTime('UTC'), error_code LowCardinality(String), drop_date Date,
    requests SimpleAggregateFunction(sum, UInt64), last_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date) ORDER BY (project_id, hour, error_code, drop_date)
TTL drop_date SETTINGS ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS errors_hourly_mv TO errors_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, error_code, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests, max(i.ts) AS last_at
FROM ingest AS i WHERE i.outcome IN ('error', 'interrupted') GROUP BY project_id, hour, error_code, drop_date;

RENAME TABLE IF EXISTS ingest TO ingest_closed;

TRUNCATE TABLE errors_hourly;

-- The rows come by project and time, so only one hour is in memory at once.
INSERT INTO errors_hourly (project_id, hour, error_code, drop_date, requests, last_at)
SELECT
    project_id, toStartOfHour(r.ts, 'UTC') AS hour, error_code, drop_date, count() AS requests, max(r.ts) AS last_at
FROM requests AS r WHERE r.outcome IN ('error', 'interrupted') GROUP BY project_id, hour, error_code, drop_date
SETTINGS optimize_aggregation_in_order = 1, max_threads = 2, max_execution_time = 0, insert_deduplicate = 0,
    max_partitions_per_insert_block = 0;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
