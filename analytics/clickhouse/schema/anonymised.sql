-- Requests enter the store again here once they have lost the names of their user and session: as rows of `requests`,
-- and in the figures of users, where they leave their user's row and join the row of the empty user. All other figures
-- still count the first row of such a request, so these rows do not go through `ingest`. Like `ingest`, the table
-- stores nothing itself, and one deduplication token covers the tables that its views fill. A column that is missing
-- here comes out empty in `requests`: a column that is added there is added here too, unless it may name a person.
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
    cost_other_usd Decimal(18, 10), cost_source LowCardinality(String),
    recorded_at DateTime64(3, 'UTC') DEFAULT addMilliseconds(ts, latency_ms),
    operation LowCardinality(String) DEFAULT 'chat', is_native Bool, had_user Bool,
    question_cached Bool, language LowCardinality(String), client_tokens UInt32, other_used Bool, empty_answer Bool,
    team_id UInt64
) ENGINE = Null;
