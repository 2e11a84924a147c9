CREATE TABLE anonymised
(
    `project_id` UUID,
    `ts` DateTime64(6, 'UTC'),
    `request_id` UUID,
    `outcome` LowCardinality(String),
    `status_code` UInt16,
    `api_key_id` UInt64,
    `source` LowCardinality(String),
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `requested_model` LowCardinality(String),
    `error_type` LowCardinality(String),
    `error_code` LowCardinality(String),
    `finish_reason` LowCardinality(String),
    `is_stream` Bool,
    `cache_status` LowCardinality(String),
    `retry_count` UInt16,
    `fallback_used` Bool,
    `prompt_tokens` UInt32,
    `completion_tokens` UInt32,
    `cache_read_tokens` UInt32,
    `cache_write_tokens` UInt32,
    `reasoning_tokens` UInt32,
    `tokens_estimated` Bool,
    `cost_known` Bool,
    `cost_input_usd` Decimal(18, 10),
    `cost_cache_read_usd` Decimal(18, 10),
    `cost_cache_write_usd` Decimal(18, 10),
    `cost_output_usd` Decimal(18, 10),
    `cost_usd` Decimal(18, 10),
    `latency_ms` UInt32,
    `ttft_ms` UInt32,
    `prompt_config_id` UUID,
    `prompt_version` UInt32,
    `rollout_id` UUID,
    `rollout_stage` UInt16,
    `variant` LowCardinality(String),
    `alloc_unit` UInt64,
    `alloc_fallback` Bool,
    `contract_violation` Bool,
    `drop_date` Date,
    `cost_other_usd` Decimal(18, 10),
    `cost_source` LowCardinality(String),
    `recorded_at` DateTime64(3, 'UTC') DEFAULT addMilliseconds(ts, latency_ms),
    `had_user` Bool
)
ENGINE = `Null`;

CREATE MATERIALIZED VIEW anonymised_requests_mv TO requests
(
    `project_id` UUID,
    `ts` DateTime64(6, 'UTC'),
    `request_id` UUID,
    `outcome` LowCardinality(String),
    `status_code` UInt16,
    `api_key_id` UInt64,
    `source` LowCardinality(String),
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `requested_model` LowCardinality(String),
    `error_type` LowCardinality(String),
    `error_code` LowCardinality(String),
    `finish_reason` LowCardinality(String),
    `is_stream` Bool,
    `cache_status` LowCardinality(String),
    `retry_count` UInt16,
    `fallback_used` Bool,
    `prompt_tokens` UInt32,
    `completion_tokens` UInt32,
    `cache_read_tokens` UInt32,
    `cache_write_tokens` UInt32,
    `reasoning_tokens` UInt32,
    `tokens_estimated` Bool,
    `cost_known` Bool,
    `cost_input_usd` Decimal(18, 10),
    `cost_cache_read_usd` Decimal(18, 10),
    `cost_cache_write_usd` Decimal(18, 10),
    `cost_output_usd` Decimal(18, 10),
    `cost_usd` Decimal(18, 10),
    `latency_ms` UInt32,
    `ttft_ms` UInt32,
    `prompt_config_id` UUID,
    `prompt_version` UInt32,
    `rollout_id` UUID,
    `rollout_stage` UInt16,
    `variant` LowCardinality(String),
    `alloc_unit` UInt64,
    `alloc_fallback` Bool,
    `contract_violation` Bool,
    `drop_date` Date,
    `cost_other_usd` Decimal(18, 10),
    `cost_source` LowCardinality(String),
    `recorded_at` DateTime64(3, 'UTC')
)
AS SELECT * EXCEPT had_user
FROM anonymised;

CREATE MATERIALIZED VIEW anonymised_user_hours_mv TO users_hourly
(
    `project_id` UUID,
    `hour` DateTime('UTC'),
    `user_id` String,
    `drop_date` Date,
    `first_at` DateTime64(6, 'UTC'),
    `last_at` DateTime64(6, 'UTC'),
    `requests` UInt64,
    `errors` UInt64,
    `cancelled` UInt64,
    `unpriced` UInt64,
    `prompt_tokens` UInt64,
    `completion_tokens` UInt64,
    `cache_read_tokens` UInt64,
    `cache_write_tokens` UInt64,
    `cost_usd` Decimal(38, 10),
    `latency_sum_ms` UInt64,
    `models` Array(String),
    `session_set` AggregateFunction(uniqExact, UInt64)
)
AS SELECT
    project_id,
    toStartOfHour(i.ts, 'UTC') AS hour,
    '' AS user_id,
    drop_date,
    min(i.ts) AS first_at,
    max(i.ts) AS last_at,
    count() AS requests,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled,
    countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens,
    sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens,
    sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd,
    sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(toUInt64(0), false) AS session_set
FROM anonymised AS i
WHERE i.had_user
GROUP BY
    project_id,
    hour,
    drop_date;

CREATE MATERIALIZED VIEW anonymised_users_mv TO users_daily
(
    `project_id` UUID,
    `day` Date,
    `user_id` String,
    `drop_date` Date,
    `first_at` DateTime64(6, 'UTC'),
    `last_at` DateTime64(6, 'UTC'),
    `requests` UInt64,
    `errors` UInt64,
    `cancelled` UInt64,
    `unpriced` UInt64,
    `prompt_tokens` UInt64,
    `completion_tokens` UInt64,
    `cache_read_tokens` UInt64,
    `cache_write_tokens` UInt64,
    `cost_usd` Decimal(38, 10),
    `latency_sum_ms` UInt64,
    `models` Array(String),
    `session_set` AggregateFunction(uniqExact, UInt64)
)
AS SELECT
    project_id,
    toDate(i.ts, 'UTC') AS day,
    '' AS user_id,
    drop_date,
    min(i.ts) AS first_at,
    max(i.ts) AS last_at,
    count() AS requests,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled,
    countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens,
    sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens,
    sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd,
    sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(toUInt64(0), false) AS session_set
FROM anonymised AS i
WHERE i.had_user
GROUP BY
    project_id,
    day,
    drop_date;

CREATE TABLE errors_daily
(
    `project_id` UUID,
    `day` Date,
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `error_type` LowCardinality(String),
    `error_code` LowCardinality(String),
    `status_code` UInt16,
    `drop_date` Date,
    `requests` SimpleAggregateFunction(sum, UInt64),
    `last_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, day, provider, model, error_type, error_code, status_code, drop_date)
TTL drop_date
SETTINGS ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, index_granularity = 8192, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW errors_daily_mv TO errors_daily
(
    `project_id` UUID,
    `day` Date,
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `error_type` LowCardinality(String),
    `error_code` LowCardinality(String),
    `status_code` UInt16,
    `drop_date` Date,
    `requests` UInt64,
    `last_at` DateTime64(6, 'UTC')
)
AS SELECT
    project_id,
    toDate(i.ts, 'UTC') AS day,
    provider,
    model,
    error_type,
    error_code,
    status_code,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests,
    max(i.ts) AS last_at
FROM ingest AS i
WHERE i.outcome IN ('error', 'interrupted')
GROUP BY
    project_id,
    day,
    provider,
    model,
    error_type,
    error_code,
    status_code,
    drop_date;

CREATE TABLE feedback
(
    `project_id` UUID,
    `ts` DateTime64(6, 'UTC') CODEC(Delta(8), LZ4),
    `id` UUID,
    `version` UInt64,
    `is_deleted` UInt8,
    `session_id` String,
    `score` UInt8,
    `has_text` Bool,
    `drop_date` Date
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, ts, id)
TTL drop_date
SETTINGS ttl_only_drop_parts = 0, index_granularity = 8192;

CREATE TABLE ingest
(
    `project_id` UUID,
    `ts` DateTime64(6, 'UTC'),
    `request_id` UUID,
    `outcome` LowCardinality(String),
    `status_code` UInt16,
    `api_key_id` UInt64,
    `source` LowCardinality(String),
    `session_id` String,
    `user_id` String,
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `requested_model` LowCardinality(String),
    `error_type` LowCardinality(String),
    `error_code` LowCardinality(String),
    `error_message` String,
    `finish_reason` LowCardinality(String),
    `is_stream` Bool,
    `cache_status` LowCardinality(String),
    `retry_count` UInt16,
    `fallback_used` Bool,
    `prompt_tokens` UInt32,
    `completion_tokens` UInt32,
    `cache_read_tokens` UInt32,
    `cache_write_tokens` UInt32,
    `reasoning_tokens` UInt32,
    `tokens_estimated` Bool,
    `cost_known` Bool,
    `cost_input_usd` Decimal(18, 10),
    `cost_cache_read_usd` Decimal(18, 10),
    `cost_cache_write_usd` Decimal(18, 10),
    `cost_output_usd` Decimal(18, 10),
    `cost_other_usd` Decimal(18, 10),
    `cost_usd` Decimal(18, 10),
    `cost_source` LowCardinality(String),
    `latency_ms` UInt32,
    `ttft_ms` UInt32,
    `prompt_config_id` UUID,
    `prompt_version` UInt32,
    `rollout_id` UUID,
    `rollout_stage` UInt16,
    `variant` LowCardinality(String),
    `alloc_unit` UInt64,
    `alloc_fallback` Bool,
    `contract_violation` Bool,
    `retention_days` UInt16,
    `attempts` String,
    `attributes` Map(LowCardinality(String), String),
    `prompt` String,
    `completion` String,
    `request` String,
    `response` String
)
ENGINE = `Null`;

CREATE TABLE otel_logs
(
    `ProjectId` UUID DEFAULT toUUIDOrZero(ResourceAttributes['prompt_gateway.project_id']),
    `Timestamp` DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `TimestampTime` DateTime ALIAS toDateTime(Timestamp),
    `TraceId` String CODEC(ZSTD(1)),
    `SpanId` String CODEC(ZSTD(1)),
    `TraceFlags` UInt8,
    `SeverityText` LowCardinality(String),
    `SeverityNumber` UInt8,
    `ServiceName` LowCardinality(String),
    `Body` String CODEC(ZSTD(1)),
    `ResourceSchemaUrl` LowCardinality(String),
    `ResourceAttributes` Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    `ScopeSchemaUrl` LowCardinality(String),
    `ScopeName` String CODEC(ZSTD(1)),
    `ScopeVersion` LowCardinality(String),
    `ScopeAttributes` Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    `LogAttributes` Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    `EventName` String CODEC(ZSTD(1)),
    `RecordId` UInt64 DEFAULT cityHash64(TraceId, SpanId, SeverityNumber, Body, toString(LogAttributes)),
    `OtherSessionIds` Array(String),
    `SessionIds` Array(String) MATERIALIZED arrayDistinct(arrayFilter(id -> (id != ''), arrayConcat([LogAttributes['gen_ai.session_id'], LogAttributes['llm.session_id']], OtherSessionIds))),
    `DropDate` Date DEFAULT today() + 30,
    INDEX i_session SessionIds TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_trace TraceId TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY DropDate
ORDER BY (ProjectId, toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp, RecordId)
TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE TABLE otel_session_logs
(
    `ProjectId` UUID,
    `SessionId` String,
    `Timestamp` DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `SpanId` String,
    `RecordId` UInt64,
    `ServiceName` LowCardinality(String),
    `DropDate` Date
)
ENGINE = ReplacingMergeTree
PARTITION BY toMonday(DropDate)
ORDER BY (ProjectId, SessionId, Timestamp, SpanId, RecordId)
TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW otel_session_logs_mv TO otel_session_logs
(
    `ProjectId` UUID,
    `SessionId` String,
    `Timestamp` DateTime64(9, 'UTC'),
    `SpanId` String,
    `RecordId` UInt64,
    `ServiceName` LowCardinality(String),
    `DropDate` Date
)
AS SELECT
    ProjectId,
    arrayJoin(SessionIds) AS SessionId,
    Timestamp,
    SpanId,
    RecordId,
    ServiceName,
    DropDate
FROM otel_logs;

CREATE TABLE otel_session_spans
(
    `ProjectId` UUID,
    `SessionId` String,
    `Timestamp` DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `SpanId` String,
    `RecordId` UInt64,
    `ServiceName` LowCardinality(String),
    `DropDate` Date
)
ENGINE = ReplacingMergeTree
PARTITION BY toMonday(DropDate)
ORDER BY (ProjectId, SessionId, Timestamp, SpanId, RecordId)
TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW otel_session_spans_mv TO otel_session_spans
(
    `ProjectId` UUID,
    `SessionId` String,
    `Timestamp` DateTime64(9, 'UTC'),
    `SpanId` String,
    `RecordId` UInt64,
    `ServiceName` LowCardinality(String),
    `DropDate` Date
)
AS SELECT
    ProjectId,
    arrayJoin(SessionIds) AS SessionId,
    Timestamp,
    SpanId,
    RecordId,
    ServiceName,
    DropDate
FROM otel_traces;

CREATE TABLE otel_traces
(
    `ProjectId` UUID DEFAULT toUUIDOrZero(ResourceAttributes['prompt_gateway.project_id']),
    `Timestamp` DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `TraceId` String CODEC(ZSTD(1)),
    `SpanId` String CODEC(ZSTD(1)),
    `ParentSpanId` String CODEC(ZSTD(1)),
    `TraceState` String CODEC(ZSTD(1)),
    `SpanName` LowCardinality(String),
    `SpanKind` LowCardinality(String),
    `ServiceName` LowCardinality(String),
    `ResourceAttributes` Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    `ScopeName` String CODEC(ZSTD(1)),
    `ScopeVersion` String CODEC(ZSTD(1)),
    `SpanAttributes` Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    `Duration` UInt64 CODEC(T64, ZSTD(1)),
    `StatusCode` LowCardinality(String),
    `StatusMessage` String CODEC(ZSTD(1)),
    `Events.Timestamp` Array(DateTime64(9, 'UTC')) CODEC(ZSTD(1)),
    `Events.Name` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `Events.Attributes` Array(Map(LowCardinality(String), String)) CODEC(ZSTD(1)),
    `Links.TraceId` Array(String) CODEC(ZSTD(1)),
    `Links.SpanId` Array(String) CODEC(ZSTD(1)),
    `Links.TraceState` Array(String) CODEC(ZSTD(1)),
    `Links.Attributes` Array(Map(LowCardinality(String), String)) CODEC(ZSTD(1)),
    `RecordId` UInt64 DEFAULT cityHash64(TraceId, SpanId, SpanName, Duration),
    `OtherSessionIds` Array(String),
    `SessionIds` Array(String) MATERIALIZED arrayDistinct(arrayFilter(id -> (id != ''), arrayConcat([SpanAttributes['gen_ai.session_id'], SpanAttributes['llm.session_id']], OtherSessionIds))),
    `DropDate` Date DEFAULT today() + 30,
    INDEX i_session SessionIds TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_trace TraceId TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY DropDate
ORDER BY (ProjectId, toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp, RecordId)
TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE TABLE payloads
(
    `project_id` UUID SETTINGS (min_compress_block_size = 8192),
    `ts` DateTime64(6, 'UTC') CODEC(Delta(8), LZ4) SETTINGS (min_compress_block_size = 8192),
    `request_id` UUID SETTINGS (min_compress_block_size = 8192),
    `session_id` String,
    `prompt` String CODEC(ZSTD(3)) SETTINGS (min_compress_block_size = 8192),
    `completion` String CODEC(ZSTD(3)) SETTINGS (min_compress_block_size = 8192),
    `request` String CODEC(ZSTD(3)),
    `response` String CODEC(ZSTD(3)),
    `drop_date` Date,
    INDEX i_letters replaceAll(replaceAll(replaceAll(lowerUTF8(concat(prompt, '\0', completion, '\0')), 'i̇', 'i'), 'ı', 'i'), 'ς', 'σ') TYPE text(tokenizer = ngrams(4), posting_list_codec = 'bitpacking') GRANULARITY 100000000,
    INDEX i_few_letters replaceAll(replaceAll(replaceAll(lowerUTF8(arrayStringConcat(extractAll(concat(prompt, '\0', completion, '\0'), '[\\x00-\\x7F]{0,3}[^\\x00-\\x7F]+(?:[\\x00-\\x7F]{1,2}[^\\x00-\\x7F]+)*'), '\0')), 'i̇', 'i'), 'ı', 'i'), 'ς', 'σ') TYPE text(tokenizer = ngrams(3), posting_list_codec = 'bitpacking') GRANULARITY 100000000,
    INDEX i_ideographs replaceRegexpAll(concat(prompt, '\0', completion, '\0'), '[^\\x{E00}-\\x{E7F}\\x{1100}-\\x{11FF}\\x{3005}-\\x{3007}\\x{3040}-\\x{30FF}\\x{3400}-\\x{4DBF}\\x{4E00}-\\x{9FFF}\\x{AC00}-\\x{D7AF}\\x{F900}-\\x{FAFF}\\x{20000}-\\x{3FFFF}]+', ' ') TYPE text(tokenizer = ngrams(2), posting_list_codec = 'bitpacking') GRANULARITY 100000000,
    INDEX i_request request_id TYPE bloom_filter(0.001) GRANULARITY 16
)
ENGINE = MergeTree
PARTITION BY toMonday(drop_date)
ORDER BY (project_id, ts, request_id)
TTL drop_date
SETTINGS index_granularity = 128, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW payloads_mv TO payloads
(
    `project_id` UUID,
    `ts` DateTime64(6, 'UTC'),
    `request_id` UUID,
    `session_id` String,
    `prompt` String,
    `completion` String,
    `request` String,
    `response` String,
    `drop_date` Date
)
AS SELECT
    project_id,
    ts,
    request_id,
    session_id,
    prompt,
    completion,
    request,
    response,
    toDate(i.ts, 'UTC') + least(i.retention_days, 90) AS drop_date
FROM ingest AS i
WHERE (i.request != '') OR (i.response != '');

CREATE TABLE request_kinds
(
    `project_id` UUID,
    `day` Date,
    `outcome` LowCardinality(String),
    `status_code` UInt16,
    `source` LowCardinality(String),
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `requested_model` LowCardinality(String),
    `error_type` LowCardinality(String),
    `error_code` LowCardinality(String),
    `prompt_config_id` UUID,
    `prompt_version` UInt32,
    `rollout_id` UUID,
    `variant` LowCardinality(String),
    `drop_date` Date,
    `requests` SimpleAggregateFunction(sum, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, day, outcome, status_code, source, provider, model, requested_model, error_type, error_code, prompt_config_id, prompt_version, rollout_id, variant, drop_date)
TTL drop_date
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW request_kinds_mv TO request_kinds
(
    `project_id` UUID,
    `day` Date,
    `outcome` LowCardinality(String),
    `status_code` UInt16,
    `source` LowCardinality(String),
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `requested_model` LowCardinality(String),
    `error_type` LowCardinality(String),
    `error_code` LowCardinality(String),
    `prompt_config_id` UUID,
    `prompt_version` UInt32,
    `rollout_id` UUID,
    `variant` LowCardinality(String),
    `drop_date` Date,
    `requests` UInt64
)
AS SELECT
    project_id,
    toDate(i.ts, 'UTC') AS day,
    outcome,
    status_code,
    source,
    provider,
    model,
    requested_model,
    error_type,
    error_code,
    prompt_config_id,
    prompt_version,
    rollout_id,
    variant,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests
FROM ingest AS i
GROUP BY
    project_id,
    day,
    outcome,
    status_code,
    source,
    provider,
    model,
    requested_model,
    error_type,
    error_code,
    prompt_config_id,
    prompt_version,
    rollout_id,
    variant,
    drop_date;

CREATE TABLE requests
(
    `project_id` UUID,
    `ts` DateTime64(6, 'UTC') CODEC(Delta(8), LZ4),
    `request_id` UUID,
    `outcome` LowCardinality(String),
    `status_code` UInt16,
    `api_key_id` UInt64,
    `source` LowCardinality(String),
    `session_id` String,
    `user_id` String,
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `requested_model` LowCardinality(String),
    `error_type` LowCardinality(String),
    `error_code` LowCardinality(String),
    `error_message` String,
    `finish_reason` LowCardinality(String),
    `is_stream` Bool,
    `cache_status` LowCardinality(String),
    `retry_count` UInt16,
    `fallback_used` Bool,
    `prompt_tokens` UInt32,
    `completion_tokens` UInt32,
    `cache_read_tokens` UInt32,
    `cache_write_tokens` UInt32,
    `reasoning_tokens` UInt32,
    `tokens_estimated` Bool,
    `cost_known` Bool,
    `cost_input_usd` Decimal(18, 10),
    `cost_cache_read_usd` Decimal(18, 10),
    `cost_cache_write_usd` Decimal(18, 10),
    `cost_output_usd` Decimal(18, 10),
    `cost_usd` Decimal(18, 10),
    `latency_ms` UInt32,
    `ttft_ms` UInt32,
    `prompt_config_id` UUID,
    `prompt_version` UInt32,
    `rollout_id` UUID,
    `rollout_stage` UInt16,
    `variant` LowCardinality(String),
    `alloc_unit` UInt64,
    `alloc_fallback` Bool,
    `contract_violation` Bool,
    `attempts` String,
    `attributes` Map(LowCardinality(String), String),
    `prompt_preview` String,
    `completion_preview` String,
    `drop_date` Date,
    `cost_other_usd` Decimal(18, 10),
    `cost_source` LowCardinality(String),
    `recorded_at` DateTime64(3, 'UTC') DEFAULT addMilliseconds(ts, latency_ms),
    INDEX i_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX i_rollout rollout_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX i_request request_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_recorded recorded_at TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, ts, request_id)
TTL drop_date
SETTINGS index_granularity = 1024, min_compress_block_size = 16384, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE TABLE requests_daily
(
    `project_id` UUID,
    `day` Date,
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `drop_date` Date,
    `requests` SimpleAggregateFunction(sum, UInt64),
    `errors` SimpleAggregateFunction(sum, UInt64),
    `cancelled` SimpleAggregateFunction(sum, UInt64),
    `unpriced` SimpleAggregateFunction(sum, UInt64),
    `prompt_tokens` SimpleAggregateFunction(sum, UInt64),
    `completion_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_read_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_write_tokens` SimpleAggregateFunction(sum, UInt64),
    `cost_usd` SimpleAggregateFunction(sum, Decimal(38, 10)),
    `latency_sum_ms` SimpleAggregateFunction(sum, UInt64),
    `latency_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    `streamed` SimpleAggregateFunction(sum, UInt64),
    `ttft_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, day, provider, model, drop_date)
TTL drop_date
SETTINGS index_granularity = 256, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW requests_daily_mv TO requests_daily
(
    `project_id` UUID,
    `day` Date,
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `drop_date` Date,
    `requests` UInt64,
    `errors` UInt64,
    `cancelled` UInt64,
    `unpriced` UInt64,
    `prompt_tokens` UInt64,
    `completion_tokens` UInt64,
    `cache_read_tokens` UInt64,
    `cache_write_tokens` UInt64,
    `cost_usd` Decimal(38, 10),
    `latency_sum_ms` UInt64,
    `latency_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    `streamed` UInt64,
    `ttft_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32)
)
AS SELECT
    project_id,
    toDate(i.ts, 'UTC') AS day,
    provider,
    model,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled,
    countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens,
    sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens,
    sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd,
    sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestState(0.5, 0.95, 0.99)(i.latency_ms) AS latency_q,
    countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest AS i
GROUP BY
    project_id,
    day,
    provider,
    model,
    drop_date;

CREATE TABLE requests_hourly
(
    `project_id` UUID,
    `hour` DateTime('UTC'),
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `drop_date` Date,
    `requests` SimpleAggregateFunction(sum, UInt64),
    `errors` SimpleAggregateFunction(sum, UInt64),
    `cancelled` SimpleAggregateFunction(sum, UInt64),
    `unpriced` SimpleAggregateFunction(sum, UInt64),
    `prompt_tokens` SimpleAggregateFunction(sum, UInt64),
    `completion_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_read_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_write_tokens` SimpleAggregateFunction(sum, UInt64),
    `cost_usd` SimpleAggregateFunction(sum, Decimal(38, 10)),
    `latency_sum_ms` SimpleAggregateFunction(sum, UInt64),
    `latency_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    `streamed` SimpleAggregateFunction(sum, UInt64),
    `ttft_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, hour, provider, model, drop_date)
TTL drop_date
SETTINGS index_granularity = 256, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW requests_hourly_mv TO requests_hourly
(
    `project_id` UUID,
    `hour` DateTime('UTC'),
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `drop_date` Date,
    `requests` UInt64,
    `errors` UInt64,
    `cancelled` UInt64,
    `unpriced` UInt64,
    `prompt_tokens` UInt64,
    `completion_tokens` UInt64,
    `cache_read_tokens` UInt64,
    `cache_write_tokens` UInt64,
    `cost_usd` Decimal(38, 10),
    `latency_sum_ms` UInt64,
    `latency_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    `streamed` UInt64,
    `ttft_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32)
)
AS SELECT
    project_id,
    toStartOfHour(i.ts, 'UTC') AS hour,
    provider,
    model,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled,
    countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens,
    sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens,
    sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd,
    sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestState(0.5, 0.95, 0.99)(i.latency_ms) AS latency_q,
    countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest AS i
GROUP BY
    project_id,
    hour,
    provider,
    model,
    drop_date;

CREATE TABLE requests_minute
(
    `project_id` UUID,
    `minute` DateTime('UTC'),
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `prompt_config_id` UUID,
    `prompt_version` UInt32,
    `rollout_id` UUID,
    `rollout_stage` UInt16,
    `variant` LowCardinality(String),
    `drop_date` Date,
    `requests` SimpleAggregateFunction(sum, UInt64),
    `errors` SimpleAggregateFunction(sum, UInt64),
    `cancelled` SimpleAggregateFunction(sum, UInt64),
    `unpriced` SimpleAggregateFunction(sum, UInt64),
    `prompt_tokens` SimpleAggregateFunction(sum, UInt64),
    `completion_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_read_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_write_tokens` SimpleAggregateFunction(sum, UInt64),
    `cost_usd` SimpleAggregateFunction(sum, Decimal(38, 10)),
    `latency_sum_ms` SimpleAggregateFunction(sum, UInt64),
    `latency_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    `ttft_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    `contract_violations` SimpleAggregateFunction(sum, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, minute, provider, model, prompt_config_id, prompt_version, rollout_id, rollout_stage, variant, drop_date)
TTL drop_date
SETTINGS ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, index_granularity = 8192, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW requests_minute_mv TO requests_minute
(
    `project_id` UUID,
    `minute` DateTime('UTC'),
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `prompt_config_id` UUID,
    `prompt_version` UInt32,
    `rollout_id` UUID,
    `rollout_stage` UInt16,
    `variant` LowCardinality(String),
    `drop_date` Date,
    `requests` UInt64,
    `errors` UInt64,
    `cancelled` UInt64,
    `unpriced` UInt64,
    `prompt_tokens` UInt64,
    `completion_tokens` UInt64,
    `cache_read_tokens` UInt64,
    `cache_write_tokens` UInt64,
    `cost_usd` Decimal(38, 10),
    `latency_sum_ms` UInt64,
    `latency_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    `ttft_q` AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32),
    `contract_violations` UInt64
)
AS SELECT
    project_id,
    toStartOfMinute(i.ts, 'UTC') AS minute,
    provider,
    model,
    prompt_config_id,
    prompt_version,
    rollout_id,
    rollout_stage,
    variant,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled,
    countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens,
    sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens,
    sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd,
    sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestState(0.5, 0.95, 0.99)(i.latency_ms) AS latency_q,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q,
    countIf(i.contract_violation) AS contract_violations
FROM ingest AS i
GROUP BY
    project_id,
    minute,
    provider,
    model,
    prompt_config_id,
    prompt_version,
    rollout_id,
    rollout_stage,
    variant,
    drop_date;

CREATE MATERIALIZED VIEW requests_mv TO requests
(
    `project_id` UUID,
    `ts` DateTime64(6, 'UTC'),
    `request_id` UUID,
    `outcome` LowCardinality(String),
    `status_code` UInt16,
    `api_key_id` UInt64,
    `source` LowCardinality(String),
    `session_id` String,
    `user_id` String,
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `requested_model` LowCardinality(String),
    `error_type` LowCardinality(String),
    `error_code` LowCardinality(String),
    `error_message` String,
    `finish_reason` LowCardinality(String),
    `is_stream` Bool,
    `cache_status` LowCardinality(String),
    `retry_count` UInt16,
    `fallback_used` Bool,
    `prompt_tokens` UInt32,
    `completion_tokens` UInt32,
    `cache_read_tokens` UInt32,
    `cache_write_tokens` UInt32,
    `reasoning_tokens` UInt32,
    `tokens_estimated` Bool,
    `cost_known` Bool,
    `cost_input_usd` Decimal(18, 10),
    `cost_cache_read_usd` Decimal(18, 10),
    `cost_cache_write_usd` Decimal(18, 10),
    `cost_output_usd` Decimal(18, 10),
    `cost_other_usd` Decimal(18, 10),
    `cost_usd` Decimal(18, 10),
    `cost_source` LowCardinality(String),
    `latency_ms` UInt32,
    `ttft_ms` UInt32,
    `prompt_config_id` UUID,
    `prompt_version` UInt32,
    `rollout_id` UUID,
    `rollout_stage` UInt16,
    `variant` LowCardinality(String),
    `alloc_unit` UInt64,
    `alloc_fallback` Bool,
    `contract_violation` Bool,
    `attempts` String,
    `attributes` Map(LowCardinality(String), String),
    `prompt_preview` String,
    `completion_preview` String,
    `drop_date` Date,
    `recorded_at` DateTime64(3, 'UTC')
)
AS SELECT
    * EXCEPT (prompt, completion, request, response, retention_days),
    substringUTF8(i.prompt, 1, 200) AS prompt_preview,
    substringUTF8(i.completion, 1, 200) AS completion_preview,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    now64(3, 'UTC') AS recorded_at
FROM ingest AS i;

CREATE TABLE scores
(
    `project_id` UUID,
    `ts` DateTime64(6, 'UTC') CODEC(Delta(8), LZ4),
    `id` UUID,
    `version` UInt64,
    `is_deleted` UInt8,
    `request_id` String,
    `score_name` LowCardinality(String),
    `score_type` LowCardinality(String),
    `evaluator_type` LowCardinality(String),
    `score_value` Float64,
    `score_label` String,
    `request_known` Bool,
    `provider` LowCardinality(String),
    `model` LowCardinality(String),
    `prompt_config_id` UUID,
    `prompt_version` UInt32,
    `rollout_id` UUID,
    `variant` LowCardinality(String),
    `drop_date` Date
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, ts, id)
TTL drop_date
SETTINGS ttl_only_drop_parts = 0, index_granularity = 8192;

CREATE TABLE session_days
(
    `project_id` UUID,
    `day` Date,
    `session_hash` UInt64,
    `session_id` String,
    `user_id` String,
    `drop_date` Date,
    `started_at` SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    `ended_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    `requests` SimpleAggregateFunction(sum, UInt64),
    `errors` SimpleAggregateFunction(sum, UInt64),
    `cancelled` SimpleAggregateFunction(sum, UInt64),
    `unpriced` SimpleAggregateFunction(sum, UInt64),
    `prompt_tokens` SimpleAggregateFunction(sum, UInt64),
    `completion_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_read_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_write_tokens` SimpleAggregateFunction(sum, UInt64),
    `cost_usd` SimpleAggregateFunction(sum, Decimal(38, 10)),
    `latency_sum_ms` SimpleAggregateFunction(sum, UInt64),
    `models` SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    `providers` SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    INDEX i_session session_hash TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, day, session_hash, session_id, user_id, drop_date)
TTL drop_date
SETTINGS index_granularity = 512, min_compress_block_size = 8192, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW session_days_mv TO session_days
(
    `project_id` UUID,
    `day` Date,
    `session_hash` UInt64,
    `session_id` String,
    `user_id` String,
    `drop_date` Date,
    `started_at` DateTime64(6, 'UTC'),
    `ended_at` DateTime64(6, 'UTC'),
    `requests` UInt64,
    `errors` UInt64,
    `cancelled` UInt64,
    `unpriced` UInt64,
    `prompt_tokens` UInt64,
    `completion_tokens` UInt64,
    `cache_read_tokens` UInt64,
    `cache_write_tokens` UInt64,
    `cost_usd` Decimal(38, 10),
    `latency_sum_ms` UInt64,
    `models` Array(String),
    `providers` Array(String)
)
AS SELECT
    project_id,
    toDate(i.ts, 'UTC') AS day,
    cityHash64(i.session_id) AS session_hash,
    session_id,
    user_id,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    min(i.ts) AS started_at,
    max(i.ts) AS ended_at,
    count() AS requests,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled,
    countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens,
    sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens,
    sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd,
    sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    groupUniqArrayIf(toString(i.provider), i.provider != '') AS providers
FROM ingest AS i
WHERE i.session_id != ''
GROUP BY
    project_id,
    day,
    session_hash,
    session_id,
    user_id,
    drop_date;

CREATE TABLE user_sessions
(
    `project_id` UUID,
    `user_id` String,
    `day` Date,
    `session_hash` UInt64,
    `drop_date` Date,
    `requests` SimpleAggregateFunction(sum, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, user_id, day, session_hash, drop_date)
TTL drop_date
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW user_sessions_mv TO user_sessions
(
    `project_id` UUID,
    `user_id` String,
    `day` Date,
    `session_hash` UInt64,
    `drop_date` Date,
    `requests` UInt64
)
AS SELECT
    project_id,
    user_id,
    toDate(i.ts, 'UTC') AS day,
    cityHash64(i.session_id) AS session_hash,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests
FROM ingest AS i
WHERE (i.session_id != '') AND (i.user_id != '')
GROUP BY
    project_id,
    user_id,
    day,
    session_hash,
    drop_date;

CREATE TABLE users_daily
(
    `project_id` UUID,
    `day` Date,
    `user_id` String,
    `drop_date` Date,
    `user_hash` UInt64 MATERIALIZED cityHash64(user_id),
    `first_at` SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    `last_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    `requests` SimpleAggregateFunction(sum, UInt64),
    `errors` SimpleAggregateFunction(sum, UInt64),
    `cancelled` SimpleAggregateFunction(sum, UInt64),
    `unpriced` SimpleAggregateFunction(sum, UInt64),
    `prompt_tokens` SimpleAggregateFunction(sum, UInt64),
    `completion_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_read_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_write_tokens` SimpleAggregateFunction(sum, UInt64),
    `cost_usd` SimpleAggregateFunction(sum, Decimal(38, 10)),
    `latency_sum_ms` SimpleAggregateFunction(sum, UInt64),
    `models` SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    `session_set` AggregateFunction(uniqExact, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project_id, user_id, day, drop_date)
TTL drop_date
SETTINGS index_granularity = 1024, min_compress_block_size = 8192, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW users_daily_mv TO users_daily
(
    `project_id` UUID,
    `day` Date,
    `user_id` String,
    `drop_date` Date,
    `first_at` DateTime64(6, 'UTC'),
    `last_at` DateTime64(6, 'UTC'),
    `requests` UInt64,
    `errors` UInt64,
    `cancelled` UInt64,
    `unpriced` UInt64,
    `prompt_tokens` UInt64,
    `completion_tokens` UInt64,
    `cache_read_tokens` UInt64,
    `cache_write_tokens` UInt64,
    `cost_usd` Decimal(38, 10),
    `latency_sum_ms` UInt64,
    `models` Array(String),
    `session_set` AggregateFunction(uniqExact, UInt64)
)
AS SELECT
    project_id,
    toDate(i.ts, 'UTC') AS day,
    user_id,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    min(i.ts) AS first_at,
    max(i.ts) AS last_at,
    count() AS requests,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled,
    countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens,
    sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens,
    sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd,
    sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), (i.session_id != '') AND (i.user_id != '')) AS session_set
FROM ingest AS i
GROUP BY
    project_id,
    day,
    user_id,
    drop_date;

CREATE TABLE users_hourly
(
    `project_id` UUID,
    `hour` DateTime('UTC'),
    `user_id` String,
    `drop_date` Date,
    `first_at` SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    `last_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    `requests` SimpleAggregateFunction(sum, UInt64),
    `errors` SimpleAggregateFunction(sum, UInt64),
    `cancelled` SimpleAggregateFunction(sum, UInt64),
    `unpriced` SimpleAggregateFunction(sum, UInt64),
    `prompt_tokens` SimpleAggregateFunction(sum, UInt64),
    `completion_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_read_tokens` SimpleAggregateFunction(sum, UInt64),
    `cache_write_tokens` SimpleAggregateFunction(sum, UInt64),
    `cost_usd` SimpleAggregateFunction(sum, Decimal(38, 10)),
    `latency_sum_ms` SimpleAggregateFunction(sum, UInt64),
    `models` SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    `session_set` AggregateFunction(uniqExact, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, hour, user_id, drop_date)
TTL drop_date
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW users_hourly_mv TO users_hourly
(
    `project_id` UUID,
    `hour` DateTime('UTC'),
    `user_id` String,
    `drop_date` Date,
    `first_at` DateTime64(6, 'UTC'),
    `last_at` DateTime64(6, 'UTC'),
    `requests` UInt64,
    `errors` UInt64,
    `cancelled` UInt64,
    `unpriced` UInt64,
    `prompt_tokens` UInt64,
    `completion_tokens` UInt64,
    `cache_read_tokens` UInt64,
    `cache_write_tokens` UInt64,
    `cost_usd` Decimal(38, 10),
    `latency_sum_ms` UInt64,
    `models` Array(String),
    `session_set` AggregateFunction(uniqExact, UInt64)
)
AS SELECT
    project_id,
    toStartOfHour(i.ts, 'UTC') AS hour,
    user_id,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    min(i.ts) AS first_at,
    max(i.ts) AS last_at,
    count() AS requests,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled,
    countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens,
    sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens,
    sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd,
    sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), (i.session_id != '') AND (i.user_id != '')) AS session_set
FROM ingest AS i
GROUP BY
    project_id,
    hour,
    user_id,
    drop_date;

