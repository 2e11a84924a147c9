-- One narrow row per request: every column but the texts, previews included, so that lists never touch bodies.
-- Expired rows go by whole partitions of drop_date, each project with its own number of days, without a mutation.
-- Reverse: drop the view, then the table; the request log is lost with it.
CREATE TABLE IF NOT EXISTS requests (
    project_id UUID, ts DateTime64(6, 'UTC') CODEC(Delta, LZ4), request_id UUID,
    outcome LowCardinality(String), status_code UInt16, api_key_id UInt64, source LowCardinality(String),
    session_id String, user_id String,
    provider LowCardinality(String), model LowCardinality(String), requested_model LowCardinality(String),
    error_type LowCardinality(String), error_code LowCardinality(String), error_message String,
    finish_reason LowCardinality(String), is_stream Bool, cache_status LowCardinality(String),
    retry_count UInt16, fallback_used Bool,
    prompt_tokens UInt32, completion_tokens UInt32, cache_read_tokens UInt32, cache_write_tokens UInt32,
    reasoning_tokens UInt32, tokens_estimated Bool,
    cost_known Bool, cost_input_usd Decimal(18, 10), cost_cache_read_usd Decimal(18, 10),
    cost_cache_write_usd Decimal(18, 10), cost_output_usd Decimal(18, 10), cost_usd Decimal(18, 10),
    latency_ms UInt32, ttft_ms UInt32,
    prompt_config_id UUID, prompt_version UInt32, rollout_id UUID, rollout_stage UInt16,
    variant LowCardinality(String), alloc_unit UInt64, alloc_fallback Bool, contract_violation Bool,
    attempts String, attributes Map(LowCardinality(String), String),
    prompt_preview String, completion_preview String, drop_date Date,
    INDEX i_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX i_rollout rollout_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX i_request request_id TYPE bloom_filter(0.001) GRANULARITY 1
) ENGINE = MergeTree PARTITION BY toYYYYMM(drop_date) ORDER BY (project_id, ts, request_id) TTL drop_date
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS requests_mv TO requests AS
SELECT
    * EXCEPT (prompt, completion, request, response, retention_days),
    substringUTF8(i.prompt, 1, 200) AS prompt_preview,
    substringUTF8(i.completion, 1, 200) AS completion_preview,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date
FROM ingest AS i;
