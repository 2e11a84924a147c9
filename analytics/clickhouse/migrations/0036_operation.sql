-- The client protocol of each request (`chat`, `responses`, `messages`, …), and whether its provider got
-- the client's own bytes. Requests of before are chat completions: a default of the column says so without a rewrite of
-- their rows, and says it of the rows that shippers of the release before go on to insert.
-- The tables of figures get the operation as the last column of their key. A key can only be extended by a column
-- without a default, so rows of before have an empty operation there. In figures an empty operation therefore means
-- `chat`, for good: the views write it so, old and new rows of a key merge, and no figure has to be counted again. All
-- of these statements change metadata alone, however much a table holds, and can run again.
-- The columns come before the views that fill them. A request that arrives in between is counted as it was before.
-- Reverse: give the views their former queries. The columns in keys stay; the others can be dropped.
ALTER TABLE requests
    ADD COLUMN IF NOT EXISTS operation LowCardinality(String) DEFAULT 'chat',
    ADD COLUMN IF NOT EXISTS is_native Bool;

ALTER TABLE anonymised
    ADD COLUMN IF NOT EXISTS operation LowCardinality(String) DEFAULT 'chat' AFTER recorded_at,
    ADD COLUMN IF NOT EXISTS is_native Bool AFTER operation;

ALTER TABLE request_kinds
    ADD COLUMN IF NOT EXISTS operation LowCardinality(String),
    MODIFY ORDER BY (
        project_id, day, outcome, status_code, source, provider, model, requested_model, error_type, error_code,
        prompt_config_id, prompt_version, rollout_id, variant, drop_date, operation
    );

ALTER TABLE requests_minute
    ADD COLUMN IF NOT EXISTS operation LowCardinality(String),
    MODIFY ORDER BY (
        project_id, minute, provider, model, prompt_config_id, prompt_version, rollout_id, rollout_stage, variant,
        drop_date, operation
    );

ALTER TABLE requests_hourly
    ADD COLUMN IF NOT EXISTS operation LowCardinality(String),
    MODIFY ORDER BY (project_id, hour, provider, model, drop_date, operation);

ALTER TABLE requests_daily
    ADD COLUMN IF NOT EXISTS operation LowCardinality(String),
    MODIFY ORDER BY (project_id, day, provider, model, drop_date, operation);

ALTER TABLE errors_daily
    ADD COLUMN IF NOT EXISTS operation LowCardinality(String),
    MODIFY ORDER BY (
        project_id, day, provider, model, error_type, error_code, status_code, drop_date, operation
    );

ALTER TABLE session_days
    ADD COLUMN IF NOT EXISTS operation LowCardinality(String),
    MODIFY ORDER BY (project_id, day, session_hash, session_id, user_id, drop_date, operation);

ALTER TABLE users_daily
    ADD COLUMN IF NOT EXISTS operation LowCardinality(String),
    MODIFY ORDER BY (project_id, user_id, day, drop_date, operation);

ALTER TABLE users_hourly
    ADD COLUMN IF NOT EXISTS operation LowCardinality(String),
    MODIFY ORDER BY (project_id, hour, user_id, drop_date, operation);

ALTER TABLE ingest
    ADD COLUMN IF NOT EXISTS operation LowCardinality(String) DEFAULT 'chat' AFTER response,
    ADD COLUMN IF NOT EXISTS is_native Bool AFTER operation;

ALTER TABLE requests_mv MODIFY QUERY
SELECT
    * EXCEPT (prompt, completion, request, response, retention_days),
    substringUTF8(i.prompt, 1, 200) AS prompt_preview,
    substringUTF8(i.completion, 1, 200) AS completion_preview,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    now64(3, 'UTC') AS recorded_at
FROM ingest AS i;

ALTER TABLE anonymised_requests_mv MODIFY QUERY
SELECT * EXCEPT had_user FROM anonymised;

ALTER TABLE request_kinds_mv MODIFY QUERY
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, outcome, status_code, source, provider, model, requested_model, error_type,
    error_code, prompt_config_id, prompt_version, rollout_id, variant,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, count() AS requests
FROM ingest AS i
GROUP BY
    project_id, day, outcome, status_code, source, provider, model, requested_model, error_type, error_code,
    prompt_config_id, prompt_version, rollout_id, variant, drop_date, operation;

ALTER TABLE requests_minute_mv MODIFY QUERY
SELECT
    project_id, toStartOfMinute(i.ts, 'UTC') AS minute, provider, model, prompt_config_id, prompt_version,
    rollout_id, rollout_stage, variant, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestState(0.5, 0.95, 0.99)(i.latency_ms) AS latency_q,
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
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestState(0.5, 0.95, 0.99)(i.latency_ms) AS latency_q, countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest AS i GROUP BY project_id, hour, provider, model, drop_date, operation;

ALTER TABLE requests_daily_mv MODIFY QUERY
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, provider, model, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestState(0.5, 0.95, 0.99)(i.latency_ms) AS latency_q, countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest AS i GROUP BY project_id, day, provider, model, drop_date, operation;

ALTER TABLE errors_daily_mv MODIFY QUERY
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, provider, model, error_type, error_code, status_code,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, count() AS requests, max(i.ts) AS last_at
FROM ingest AS i WHERE i.outcome IN ('error', 'interrupted')
GROUP BY project_id, day, provider, model, error_type, error_code, status_code, drop_date, operation;

ALTER TABLE session_days_mv MODIFY QUERY
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, cityHash64(i.session_id) AS session_hash, session_id, user_id,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, min(i.ts) AS started_at, max(i.ts) AS ended_at,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    groupUniqArrayIf(toString(i.provider), i.provider != '') AS providers
FROM ingest AS i WHERE i.session_id != ''
GROUP BY project_id, day, session_hash, session_id, user_id, drop_date, operation;

ALTER TABLE users_daily_mv MODIFY QUERY
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
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
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(toUInt64(0), false) AS session_set
FROM anonymised AS i WHERE i.had_user GROUP BY project_id, day, drop_date, operation;

ALTER TABLE users_hourly_mv MODIFY QUERY
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
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
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(toUInt64(0), false) AS session_set
FROM anonymised AS i WHERE i.had_user GROUP BY project_id, hour, drop_date, operation;
