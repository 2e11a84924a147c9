-- The keys of spans in the order of traces. otel_traces is ordered by time, where a trace found by its skip index alone
-- costs a look at the index of every granule of the project. A span that is sent again has the same key.
CREATE TABLE IF NOT EXISTS otel_trace_spans (
    ProjectId UUID, TraceId String, Timestamp DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)), SpanId String,
    RecordId UInt64, ServiceName LowCardinality(String), DropDate Date, SessionIds Array(String)
) ENGINE = ReplacingMergeTree PARTITION BY toMonday(DropDate)
ORDER BY (ProjectId, TraceId, Timestamp, SpanId, RecordId) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_trace_spans_mv TO otel_trace_spans AS
SELECT ProjectId, TraceId, Timestamp, SpanId, RecordId, ServiceName, DropDate, TimelineSessionIds AS SessionIds
FROM otel_traces;
