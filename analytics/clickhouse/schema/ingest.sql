-- Records enter the store here. The table stores nothing itself: materialized views feed the tables of requests, texts
-- and figures from the same insert, so that one deduplication token covers all of them. `operation` is the client
-- protocol (`chat`, `responses`, `messages`, …), and `is_native` says that the provider got the client's own bytes.
-- In figures an empty operation means `chat`: the column joined their keys last, where a default is not allowed, and the
-- views write it so. It is not a part of their primary keys, because a key that grows does not change those.
CREATE TABLE IF NOT EXISTS ingest (
    project_id UUID, ts DateTime64(6, 'UTC'), request_id UUID, outcome LowCardinality(String), status_code UInt16,
    api_key_id UInt64, source LowCardinality(String), session_id String, user_id String,
    provider LowCardinality(String), model LowCardinality(String), requested_model LowCardinality(String),
    error_type LowCardinality(String), error_code LowCardinality(String), error_message String,
    finish_reason LowCardinality(String), is_stream Bool, cache_status LowCardinality(String),
    retry_count UInt16, fallback_used Bool,
    prompt_tokens UInt32, completion_tokens UInt32, cache_read_tokens UInt32, cache_write_tokens UInt32,
    reasoning_tokens UInt32, tokens_estimated Bool,
    cost_known Bool, cost_input_usd Decimal(18, 10), cost_cache_read_usd Decimal(18, 10),
    cost_cache_write_usd Decimal(18, 10), cost_output_usd Decimal(18, 10), cost_other_usd Decimal(18, 10),
    cost_usd Decimal(18, 10), cost_source LowCardinality(String),
    latency_ms UInt32, ttft_ms UInt32,
    prompt_config_id UUID, prompt_version UInt32, rollout_id UUID, rollout_stage UInt16,
    variant LowCardinality(String), alloc_unit UInt64, alloc_fallback Bool, contract_violation Bool,
    retention_days UInt16, attempts String, attributes Map(LowCardinality(String), String),
    prompt String, completion String, request String, response String,
    operation LowCardinality(String) DEFAULT 'chat', is_native Bool,
    trace_id String, parent_span_id String, prompt_name LowCardinality(String), spans_derived Bool,
    question_cached Bool, language LowCardinality(String), client_tokens UInt32, other_used Bool, empty_answer Bool,
    team_id UInt64
) ENGINE = Null;
