-- Figures per hour and user, in the order of hours: the part of a range that lies in its first and in its last day.
-- Without the table up to two days of requests were read beside whole days, which doubled the cost of users over 30
-- days. Ten million requests are a million rows here, twice as many as in users_daily, and the hours of a day lie
-- together.
CREATE TABLE IF NOT EXISTS users_hourly (
    project_id UUID, hour DateTime('UTC'), user_id String, drop_date Date,
    first_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    last_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    requests SimpleAggregateFunction(sum, UInt64), errors SimpleAggregateFunction(sum, UInt64),
    cancelled SimpleAggregateFunction(sum, UInt64), unpriced SimpleAggregateFunction(sum, UInt64),
    prompt_tokens SimpleAggregateFunction(sum, UInt64), completion_tokens SimpleAggregateFunction(sum, UInt64),
    cache_read_tokens SimpleAggregateFunction(sum, UInt64), cache_write_tokens SimpleAggregateFunction(sum, UInt64),
    cost_usd SimpleAggregateFunction(sum, Decimal(38, 10)), latency_sum_ms SimpleAggregateFunction(sum, UInt64),
    models SimpleAggregateFunction(groupUniqArrayArray, Array(String)), session_set AggregateFunction(uniqExact, UInt64),
    operation LowCardinality(String),
    batched SimpleAggregateFunction(sum, UInt64)
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
PRIMARY KEY (project_id, hour, user_id, drop_date)
ORDER BY (project_id, hour, user_id, drop_date, operation) TTL drop_date
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- The view qualifies its inputs (i.), because an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS users_hourly_mv TO users_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), i.session_id != '' AND i.user_id != '') AS session_set
FROM ingest AS i GROUP BY project_id, hour, user_id, drop_date, operation;

-- Requests that have lost the name of their user join the row of the empty user.
CREATE MATERIALIZED VIEW IF NOT EXISTS anonymised_user_hours_mv TO users_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, '' AS user_id, drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(toUInt64(0), false) AS session_set
FROM anonymised AS i WHERE i.had_user GROUP BY project_id, hour, drop_date, operation;
