-- The lines of batches have no latency of their own, and counted as requests that took 0 ms. `batched` counts them, so
-- that means of latency leave them out, and percentiles are those of all other requests. Figures that a store has
-- already stay as they are.
-- The views are changed and renamed as README.md says; `ingest` and `anonymised` are away meanwhile. Every statement can
-- run again.
-- Reverse: give the views their former queries. The columns may stay.
RENAME TABLE IF EXISTS anonymised_closed TO anonymised;

RENAME TABLE IF EXISTS ingest_closed TO ingest;

RENAME TABLE IF EXISTS requests_minute_mv_renamed TO requests_minute_mv;

RENAME TABLE IF EXISTS requests_hourly_mv_renamed TO requests_hourly_mv;

RENAME TABLE IF EXISTS requests_daily_mv_renamed TO requests_daily_mv;

RENAME TABLE IF EXISTS users_hourly_mv_renamed TO users_hourly_mv;

RENAME TABLE IF EXISTS anonymised_user_hours_mv_renamed TO anonymised_user_hours_mv;

RENAME TABLE IF EXISTS users_daily_mv_renamed TO users_daily_mv;

RENAME TABLE IF EXISTS anonymised_users_mv_renamed TO anonymised_users_mv;

RENAME TABLE IF EXISTS session_days_mv_renamed TO session_days_mv;

RENAME TABLE IF EXISTS spend_hourly_mv_renamed TO spend_hourly_mv;

ALTER TABLE requests_minute ADD COLUMN IF NOT EXISTS batched SimpleAggregateFunction(sum, UInt64);

ALTER TABLE requests_hourly ADD COLUMN IF NOT EXISTS batched SimpleAggregateFunction(sum, UInt64);

ALTER TABLE requests_daily ADD COLUMN IF NOT EXISTS batched SimpleAggregateFunction(sum, UInt64);

ALTER TABLE users_hourly ADD COLUMN IF NOT EXISTS batched SimpleAggregateFunction(sum, UInt64);

ALTER TABLE users_daily ADD COLUMN IF NOT EXISTS batched SimpleAggregateFunction(sum, UInt64);

ALTER TABLE session_days ADD COLUMN IF NOT EXISTS batched SimpleAggregateFunction(sum, UInt64);

ALTER TABLE spend_hourly ADD COLUMN IF NOT EXISTS batched SimpleAggregateFunction(sum, UInt64);

ALTER TABLE requests_minute_mv MODIFY QUERY
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

ALTER TABLE requests_hourly_mv MODIFY QUERY
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, provider, model,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date, if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.latency_ms, i.source != 'batch') AS latency_q,
    countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest AS i GROUP BY project_id, hour, provider, model, drop_date, operation;

ALTER TABLE requests_daily_mv MODIFY QUERY
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, provider, model, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.latency_ms, i.source != 'batch') AS latency_q,
    countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest AS i GROUP BY project_id, day, provider, model, drop_date, operation;

ALTER TABLE users_hourly_mv MODIFY QUERY
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

ALTER TABLE anonymised_user_hours_mv MODIFY QUERY
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

ALTER TABLE users_daily_mv MODIFY QUERY
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
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
FROM ingest AS i GROUP BY project_id, day, user_id, drop_date, operation;

ALTER TABLE anonymised_users_mv MODIFY QUERY
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, '' AS user_id, drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(toUInt64(0), false) AS session_set
FROM anonymised AS i WHERE i.had_user GROUP BY project_id, day, drop_date, operation;

ALTER TABLE session_days_mv MODIFY QUERY
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, cityHash64(i.session_id) AS session_hash, session_id, user_id,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, min(i.ts) AS started_at, max(i.ts) AS ended_at,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    groupUniqArrayIf(toString(i.provider), i.provider != '') AS providers
FROM ingest AS i WHERE i.session_id != ''
GROUP BY project_id, day, session_hash, session_id, user_id, drop_date, operation;

ALTER TABLE spend_hourly_mv MODIFY QUERY
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, api_key_id, source, prompt_config_id, prompt_version,
    if(i.operation = 'chat', '', i.operation) AS operation, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms
FROM ingest AS i
GROUP BY project_id, hour, api_key_id, source, prompt_config_id, prompt_version, operation, drop_date;

RENAME TABLE IF EXISTS ingest TO ingest_closed;

RENAME TABLE IF EXISTS anonymised TO anonymised_closed;

RENAME TABLE IF EXISTS requests_minute_mv TO requests_minute_mv_renamed;

RENAME TABLE IF EXISTS requests_hourly_mv TO requests_hourly_mv_renamed;

RENAME TABLE IF EXISTS requests_daily_mv TO requests_daily_mv_renamed;

RENAME TABLE IF EXISTS users_hourly_mv TO users_hourly_mv_renamed;

RENAME TABLE IF EXISTS anonymised_user_hours_mv TO anonymised_user_hours_mv_renamed;

RENAME TABLE IF EXISTS users_daily_mv TO users_daily_mv_renamed;

RENAME TABLE IF EXISTS anonymised_users_mv TO anonymised_users_mv_renamed;

RENAME TABLE IF EXISTS session_days_mv TO session_days_mv_renamed;

RENAME TABLE IF EXISTS spend_hourly_mv TO spend_hourly_mv_renamed;

RENAME TABLE IF EXISTS requests_minute_mv_renamed TO requests_minute_mv;

RENAME TABLE IF EXISTS requests_hourly_mv_renamed TO requests_hourly_mv;

RENAME TABLE IF EXISTS requests_daily_mv_renamed TO requests_daily_mv;

RENAME TABLE IF EXISTS users_hourly_mv_renamed TO users_hourly_mv;

RENAME TABLE IF EXISTS anonymised_user_hours_mv_renamed TO anonymised_user_hours_mv;

RENAME TABLE IF EXISTS users_daily_mv_renamed TO users_daily_mv;

RENAME TABLE IF EXISTS anonymised_users_mv_renamed TO anonymised_users_mv;

RENAME TABLE IF EXISTS session_days_mv_renamed TO session_days_mv;

RENAME TABLE IF EXISTS spend_hourly_mv_renamed TO spend_hourly_mv;

RENAME TABLE IF EXISTS anonymised_closed TO anonymised;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
