-- Where requests enter again that lost what tells whose they were: as rows of `requests`, and in the figures of users,
-- where they leave their user's row and join that of no user. Every other figure keeps counting them as before, so this
-- does not go through `ingest`. Like that, it stores nothing itself, and one token covers both tables.
-- Columns that are not here come out empty: one that is added to `requests` is forgotten unless it is named here too.
-- Reverse: drop the views, then the table.
CREATE TABLE IF NOT EXISTS anonymised (
    project_id UUID, ts DateTime64(6, 'UTC'), request_id UUID, outcome LowCardinality(String), status_code UInt16,
    api_key_id UInt64, source LowCardinality(String), provider LowCardinality(String), model LowCardinality(String),
    requested_model LowCardinality(String), error_type LowCardinality(String), error_code LowCardinality(String),
    finish_reason LowCardinality(String), is_stream Bool, cache_status LowCardinality(String),
    retry_count UInt16, fallback_used Bool,
    prompt_tokens UInt32, completion_tokens UInt32, cache_read_tokens UInt32, cache_write_tokens UInt32,
    reasoning_tokens UInt32, tokens_estimated Bool,
    cost_known Bool, cost_input_usd Decimal(18, 10), cost_cache_read_usd Decimal(18, 10),
    cost_cache_write_usd Decimal(18, 10), cost_output_usd Decimal(18, 10), cost_usd Decimal(18, 10),
    latency_ms UInt32, ttft_ms UInt32,
    prompt_config_id UUID, prompt_version UInt32, rollout_id UUID, rollout_stage UInt16,
    variant LowCardinality(String), alloc_unit UInt64, alloc_fallback Bool, contract_violation Bool, drop_date Date,
    had_user Bool
) ENGINE = Null;

CREATE MATERIALIZED VIEW IF NOT EXISTS anonymised_requests_mv TO requests AS
SELECT * EXCEPT had_user FROM anonymised;

-- Inputs are qualified (i.): an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS anonymised_users_mv TO users_daily AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, '' AS user_id, drop_date, min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(toUInt64(0), false) AS session_set
FROM anonymised AS i WHERE i.had_user GROUP BY project_id, day, drop_date;
