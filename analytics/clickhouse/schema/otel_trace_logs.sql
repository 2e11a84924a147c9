-- The keys of log records in the order of traces, as otel_trace_spans has those of spans.
CREATE TABLE IF NOT EXISTS otel_trace_logs (
    ProjectId UUID, TraceId String, Timestamp DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)), SpanId String,
    RecordId UInt64, ServiceName LowCardinality(String), DropDate Date, SessionIds Array(String)
) ENGINE = ReplacingMergeTree PARTITION BY toMonday(DropDate)
ORDER BY (ProjectId, TraceId, Timestamp, SpanId, RecordId) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_trace_logs_mv TO otel_trace_logs AS
SELECT ProjectId, TraceId, Timestamp, SpanId, RecordId, ServiceName, DropDate, TimelineSessionIds AS SessionIds
FROM otel_logs WHERE TraceId != '';
