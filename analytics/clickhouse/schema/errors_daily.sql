-- Failed requests per day and kind of error, for the list of failures.
CREATE TABLE IF NOT EXISTS errors_daily (
    project_id UUID, day Date, provider LowCardinality(String), model LowCardinality(String),
    error_type LowCardinality(String), error_code LowCardinality(String), status_code UInt16, drop_date Date,
    requests SimpleAggregateFunction(sum, UInt64), last_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    operation LowCardinality(String)
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
PRIMARY KEY (project_id, day, provider, model, error_type, error_code, status_code, drop_date)
ORDER BY (project_id, day, provider, model, error_type, error_code, status_code, drop_date, operation) TTL drop_date
SETTINGS ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, index_granularity = 8192,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- The view qualifies its inputs (i.), because an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS errors_daily_mv TO errors_daily AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, provider, model, error_type, error_code, status_code,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, count() AS requests, max(i.ts) AS last_at
FROM ingest AS i WHERE i.outcome IN ('error', 'interrupted')
GROUP BY project_id, day, provider, model, error_type, error_code, status_code, drop_date, operation;
