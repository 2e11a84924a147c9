-- The requests in which a guardrail found something, per hour, guardrail, stage and action. Their verdicts are JSON in
-- the attributes of single requests: of ten million requests the figures of a month would read all attributes.
-- A request counts once for each guardrail, stage and action, however many findings it has of them.
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
