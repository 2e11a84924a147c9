-- The requests in which a guardrail found something, per hour, guardrail, stage and action. Their verdicts are JSON in
-- the attributes of single requests: of ten million requests the figures of a month would read all attributes.
-- A request counts once for each guardrail, stage and action, however many findings it has of them.
-- `ingest` is away while the past is filled in, so that no request is counted twice or left out.
-- Every statement can run again, because the table is emptied before it is filled.
-- Reverse: drop the view, then the table.
RENAME TABLE IF EXISTS ingest_closed TO ingest;

CREATE TABLE IF NOT EXISTS guardrails_hourly (
    project_id UUID, hour DateTime('UTC'), guardrail LowCardinality(String), stage LowCardinality(String),
    action LowCardinality(String), drop_date Date,
    requests SimpleAggregateFunction(sum, UInt64), last_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, hour, guardrail, stage, action, drop_date) TTL drop_date
SETTINGS ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, index_granularity = 1024,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- The view qualifies its inputs (i.), because an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS guardrails_hourly_mv TO guardrails_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, verdict.1 AS guardrail, verdict.2 AS stage, verdict.3 AS action,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date, count() AS requests, max(i.ts) AS last_at
FROM ingest AS i
ARRAY JOIN arrayDistinct(JSONExtract(
    i.attributes['guardrails'], 'Array(Tuple(guardrail String, stage String, action String))'
)) AS verdict
WHERE i.attributes['guardrails'] != '' GROUP BY project_id, hour, guardrail, stage, action, drop_date;

RENAME TABLE IF EXISTS ingest TO ingest_closed;

TRUNCATE TABLE guardrails_hourly;

INSERT INTO guardrails_hourly (project_id, hour, guardrail, stage, action, drop_date, requests, last_at)
SELECT
    project_id, toStartOfHour(r.ts, 'UTC') AS hour, verdict.1 AS guardrail, verdict.2 AS stage, verdict.3 AS action,
    drop_date, count() AS requests, max(r.ts) AS last_at
FROM requests AS r
ARRAY JOIN arrayDistinct(JSONExtract(
    r.attributes['guardrails'], 'Array(Tuple(guardrail String, stage String, action String))'
)) AS verdict
WHERE r.attributes['guardrails'] != '' GROUP BY project_id, hour, guardrail, stage, action, drop_date
SETTINGS max_threads = 2, max_execution_time = 0, insert_deduplicate = 0, max_partitions_per_insert_block = 0;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
