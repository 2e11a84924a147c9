-- The keys of log records in the order of sessions, as otel_session_spans has those of spans.
CREATE TABLE IF NOT EXISTS otel_session_logs (
    ProjectId UUID, SessionId String, Timestamp DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)), SpanId String,
    RecordId UInt64, ServiceName LowCardinality(String), DropDate Date
) ENGINE = ReplacingMergeTree PARTITION BY toMonday(DropDate)
ORDER BY (ProjectId, SessionId, Timestamp, SpanId, RecordId) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_session_logs_mv TO otel_session_logs AS
SELECT ProjectId, arrayJoin(SessionIds) AS SessionId, Timestamp, SpanId, RecordId, ServiceName, DropDate
FROM otel_logs;
