-- One narrow row for each request: every column but the texts, with previews of them, so that lists never read bodies.
-- Granules of 1024 rows and blocks of 16 KB: a granule and a block are the least that is read of each of the fifty
-- columns to show one row. With 8192 rows and 64 KB the rows of a page that lie apart, such as the hits of a search,
-- cost two to three times as much CPU, and a page of the newest requests almost twice as much. The small ones take a
-- sixth more disk. Expired rows leave on the day they expire, by merges and without a mutation. The one month that
-- expires is rewritten each day. Partitions of a day would make that free and every query slow: with 400 of them the
-- newest 20 requests of 4 million took ten times as long as with 14 months, and a search for one id six times as long.
-- A partition none of whose parts is younger than two hours is merged into one part, because every query opens every
-- part of its range. By itself the server leaves five to ten parts in each. `recorded_at` is the store's own time of
-- the insert: rollouts count a request in that minute, however long the request took or its record waited in a spool.
-- An anonymised request keeps the time of its first row.
-- `deployment` is the name of the deployment that answered or was the last to fail, empty where the project had nothing
-- to choose among. `retried_attempts` are the attempts of those requests that had more than one: one in eighty has, and
-- lies in nearly every granule, so that the attempts of all others would be read with it (a week of ten million requests
-- took 103 ms of CPU). The gateway's own spans are derived from requests when a session is read; a row without
-- `spans_derived` has its spans stored in `otel_traces`. The least and the greatest latency, cost and time to the first
-- token of each granule serve lists of the slowest and dearest: of ten million requests the 50 slowest are in as many
-- granules, and no other is read, which takes 100 ms instead of 480 ms. Nearly every granule of a busy project has a request
-- as slow as the last one of a page of the slowest failed ones, so that these have least and greatest latencies of their
-- own (370 ms without).
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
    cost_other_usd Decimal(18, 10), cost_source LowCardinality(String),
    recorded_at DateTime64(3, 'UTC') DEFAULT addMilliseconds(ts, latency_ms),
    operation LowCardinality(String) DEFAULT 'chat', is_native Bool,
    deployment LowCardinality(String) MATERIALIZED JSONExtractString(attempts, -1, 'deployment'),
    trace_id String, parent_span_id String, prompt_name LowCardinality(String), spans_derived Bool,
    retried_attempts String MATERIALIZED if(fallback_used OR retry_count > 0, attempts, ''),
    question_cached Bool, language LowCardinality(String), client_tokens UInt32, other_used Bool, empty_answer Bool,
    team_id UInt64,
    INDEX i_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX i_rollout rollout_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX i_request request_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_recorded recorded_at TYPE minmax GRANULARITY 1,
    INDEX i_latency latency_ms TYPE minmax GRANULARITY 1,
    INDEX i_cost cost_usd TYPE minmax GRANULARITY 1,
    INDEX i_ttft ttft_ms TYPE minmax GRANULARITY 1,
    INDEX i_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_failed_latency if(outcome = 'error', latency_ms, 0) TYPE minmax GRANULARITY 1
) ENGINE = MergeTree PARTITION BY toYYYYMM(drop_date) ORDER BY (project_id, ts, request_id) TTL drop_date
SETTINGS index_granularity = 1024, min_compress_block_size = 16384, ttl_only_drop_parts = 0,
    non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- A batch that is sent again is recognised by its token and not by its contents, so its rows keep the first
-- recorded_at.
CREATE MATERIALIZED VIEW IF NOT EXISTS requests_mv TO requests AS
SELECT
    * EXCEPT (prompt, completion, request, response, retention_days),
    substringUTF8(i.prompt, 1, 200) AS prompt_preview,
    substringUTF8(i.completion, 1, 200) AS completion_preview,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    now64(3, 'UTC') AS recorded_at
FROM ingest AS i;

CREATE MATERIALIZED VIEW IF NOT EXISTS anonymised_requests_mv TO requests AS
SELECT * EXCEPT had_user FROM anonymised;
