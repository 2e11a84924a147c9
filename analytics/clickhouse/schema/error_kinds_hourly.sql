-- Each kind of error by model per hour, with its first and its last time. `errors_daily` has days and last times alone:
-- neither a plot by the hour nor the time of the first error can be made from it.
CREATE TABLE IF NOT EXISTS error_kinds_hourly (
    project_id UUID, hour DateTime('UTC'), provider LowCardinality(String), model LowCardinality(String),
    error_type LowCardinality(String), error_code LowCardinality(String), status_code UInt16,
    operation LowCardinality(String), drop_date Date,
    requests SimpleAggregateFunction(sum, UInt64), first_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    last_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, hour, provider, model, error_type, error_code, status_code, operation, drop_date)
TTL drop_date
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- The view qualifies its inputs (i.), because an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS error_kinds_hourly_mv TO error_kinds_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, provider, model, error_type, error_code, status_code,
    if(i.operation = 'chat', '', i.operation) AS operation, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests, min(i.ts) AS first_at, max(i.ts) AS last_at
FROM ingest AS i WHERE i.outcome IN ('error', 'interrupted')
GROUP BY project_id, hour, provider, model, error_type, error_code, status_code, operation, drop_date;
