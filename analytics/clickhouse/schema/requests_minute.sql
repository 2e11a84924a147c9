-- Figures per minute, model and arm of a rollout, for the verdicts of rollouts and for live charts. The lines of batches
-- have no latency of their own, and would count as requests that took 0 ms. `batched` counts them, so that means of
-- latency leave them out, and percentiles are those of all other requests.
CREATE TABLE IF NOT EXISTS requests_minute (
    project_id UUID, minute DateTime('UTC'), provider LowCardinality(String), model LowCardinality(String),
    prompt_config_id UUID, prompt_version UInt32, rollout_id UUID, rollout_stage UInt16, variant LowCardinality(String),
    drop_date Date,
    requests SimpleAggregateFunction(sum, UInt64), errors SimpleAggregateFunction(sum, UInt64),
    cancelled SimpleAggregateFunction(sum, UInt64), unpriced SimpleAggregateFunction(sum, UInt64),
    prompt_tokens SimpleAggregateFunction(sum, UInt64), completion_tokens SimpleAggregateFunction(sum, UInt64),
    cache_read_tokens SimpleAggregateFunction(sum, UInt64), cache_write_tokens SimpleAggregateFunction(sum, UInt64),
    cost_usd SimpleAggregateFunction(sum, Decimal(38, 10)), latency_sum_ms SimpleAggregateFunction(sum, UInt64),
    latency_q AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    ttft_q AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    contract_violations SimpleAggregateFunction(sum, UInt64),
    operation LowCardinality(String),
    batched SimpleAggregateFunction(sum, UInt64)
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
PRIMARY KEY (
    project_id, minute, provider, model, prompt_config_id, prompt_version, rollout_id, rollout_stage, variant, drop_date
)
ORDER BY (
    project_id, minute, provider, model, prompt_config_id, prompt_version, rollout_id, rollout_stage, variant, drop_date,
    operation
) TTL drop_date
SETTINGS ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, index_granularity = 8192,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- The view qualifies its inputs (i.), because an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS requests_minute_mv TO requests_minute AS
SELECT
    project_id, toStartOfMinute(i.ts, 'UTC') AS minute, provider, model, prompt_config_id, prompt_version,
    rollout_id, rollout_stage, variant, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.latency_ms, i.source != 'batch') AS latency_q,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q,
    countIf(i.contract_violation) AS contract_violations
FROM ingest AS i
GROUP BY
    project_id, minute, provider, model, prompt_config_id, prompt_version, rollout_id, rollout_stage, variant,
    drop_date, operation;
