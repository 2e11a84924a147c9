-- The traces in which a span or log names a session. One row for each insert that has records of both: the first of them
-- says when the trace was in the session.
CREATE TABLE IF NOT EXISTS otel_session_traces (
    ProjectId UUID, SessionId String, TraceId String, Timestamp DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)),
    DropDate Date
) ENGINE = ReplacingMergeTree PARTITION BY toMonday(DropDate)
ORDER BY (ProjectId, SessionId, TraceId, Timestamp) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_session_traces_mv TO otel_session_traces AS
SELECT ProjectId, arrayJoin(TimelineSessionIds) AS SessionId, TraceId, min(s.Timestamp) AS Timestamp, DropDate
FROM otel_traces AS s GROUP BY ProjectId, SessionId, TraceId, DropDate;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_session_traces_of_logs_mv TO otel_session_traces AS
SELECT ProjectId, arrayJoin(TimelineSessionIds) AS SessionId, TraceId, min(l.Timestamp) AS Timestamp, DropDate
FROM otel_logs AS l WHERE TraceId != '' GROUP BY ProjectId, SessionId, TraceId, DropDate;
