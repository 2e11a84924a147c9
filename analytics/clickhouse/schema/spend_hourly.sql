-- Cost per hour by API key, source, prompt and version. Of ten million requests the question would read every row of
-- `requests`, since no other table of figures has these columns beside the cost. Budgets of teams are counted by the team
-- that a request's key belonged to, 0 without one.
CREATE TABLE IF NOT EXISTS spend_hourly (
    project_id UUID, hour DateTime('UTC'), api_key_id UInt64, source LowCardinality(String), prompt_config_id UUID,
    prompt_version UInt32, operation LowCardinality(String), drop_date Date,
    requests SimpleAggregateFunction(sum, UInt64), errors SimpleAggregateFunction(sum, UInt64),
    cancelled SimpleAggregateFunction(sum, UInt64), unpriced SimpleAggregateFunction(sum, UInt64),
    prompt_tokens SimpleAggregateFunction(sum, UInt64), completion_tokens SimpleAggregateFunction(sum, UInt64),
    cache_read_tokens SimpleAggregateFunction(sum, UInt64), cache_write_tokens SimpleAggregateFunction(sum, UInt64),
    cost_usd SimpleAggregateFunction(sum, Decimal(38, 10)), latency_sum_ms SimpleAggregateFunction(sum, UInt64),
    batched SimpleAggregateFunction(sum, UInt64), team_id UInt64
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
PRIMARY KEY (project_id, hour, api_key_id, source, prompt_config_id, prompt_version, operation, drop_date)
ORDER BY (project_id, hour, api_key_id, source, prompt_config_id, prompt_version, operation, drop_date, team_id)
TTL drop_date
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- The view qualifies its inputs (i.), because an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS spend_hourly_mv TO spend_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, api_key_id, source, prompt_config_id, prompt_version,
    if(i.operation = 'chat', '', i.operation) AS operation, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    team_id,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms
FROM ingest AS i
GROUP BY project_id, hour, api_key_id, source, prompt_config_id, prompt_version, operation, drop_date, team_id;
