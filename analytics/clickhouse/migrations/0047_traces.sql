-- What finds a trace and the traces of a session: the keys of spans and logs in the order of traces, and the traces in
-- which a span or log names a session. The tables of spans and logs are ordered by time, where a trace found by its
-- skip index alone costs a look at the index of every granule of the project.
-- `TimelineSessionIds` are the sessions in whose timelines a record counts: those of `SessionIds`, which the telemetry
-- endpoint goes by, and those that the attributes of common instrumentations name.
-- A record that is sent again has the same key in each table, so that the fills can be run again and need no table to be
-- away.
-- Reverse: drop the five views, the three tables, and the columns with their indexes.
ALTER TABLE otel_traces ADD COLUMN IF NOT EXISTS TimelineSessionIds Array(String) MATERIALIZED
    arrayDistinct(arrayFilter(id -> id != '', arrayConcat(OtherSessionIds, [
        SpanAttributes['gen_ai.session_id'], SpanAttributes['llm.session_id'], SpanAttributes['session.id'],
        SpanAttributes['gen_ai.conversation.id'], SpanAttributes['session_id'],
        SpanAttributes['traceloop.association.properties.session_id'],
        SpanAttributes['ai.telemetry.metadata.sessionId'], SpanAttributes['ai.settings.context.sessionId'],
        SpanAttributes['langfuse.session.id'], SpanAttributes['langsmith.metadata.session_id'],
        SpanAttributes['mlflow.trace.session'], SpanAttributes['gcp.vertex.agent.session_id']])));

ALTER TABLE otel_logs ADD COLUMN IF NOT EXISTS TimelineSessionIds Array(String) MATERIALIZED
    arrayDistinct(arrayFilter(id -> id != '', arrayConcat(OtherSessionIds, [
        LogAttributes['gen_ai.session_id'], LogAttributes['llm.session_id'], LogAttributes['session.id'],
        LogAttributes['gen_ai.conversation.id'], LogAttributes['session_id'],
        LogAttributes['traceloop.association.properties.session_id'],
        LogAttributes['ai.telemetry.metadata.sessionId'], LogAttributes['ai.settings.context.sessionId'],
        LogAttributes['langfuse.session.id'], LogAttributes['langsmith.metadata.session_id'],
        LogAttributes['mlflow.trace.session'], LogAttributes['gcp.vertex.agent.session_id']])));

CREATE TABLE IF NOT EXISTS otel_trace_spans (
    ProjectId UUID, TraceId String, Timestamp DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)), SpanId String,
    RecordId UInt64, ServiceName LowCardinality(String), DropDate Date, SessionIds Array(String)
) ENGINE = ReplacingMergeTree PARTITION BY toMonday(DropDate)
ORDER BY (ProjectId, TraceId, Timestamp, SpanId, RecordId) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE TABLE IF NOT EXISTS otel_trace_logs (
    ProjectId UUID, TraceId String, Timestamp DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)), SpanId String,
    RecordId UInt64, ServiceName LowCardinality(String), DropDate Date, SessionIds Array(String)
) ENGINE = ReplacingMergeTree PARTITION BY toMonday(DropDate)
ORDER BY (ProjectId, TraceId, Timestamp, SpanId, RecordId) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE TABLE IF NOT EXISTS otel_session_traces (
    ProjectId UUID, SessionId String, TraceId String, Timestamp DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)),
    DropDate Date
) ENGINE = ReplacingMergeTree PARTITION BY toMonday(DropDate)
ORDER BY (ProjectId, SessionId, TraceId, Timestamp) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_trace_spans_mv TO otel_trace_spans AS
SELECT ProjectId, TraceId, Timestamp, SpanId, RecordId, ServiceName, DropDate, TimelineSessionIds AS SessionIds
FROM otel_traces;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_trace_logs_mv TO otel_trace_logs AS
SELECT ProjectId, TraceId, Timestamp, SpanId, RecordId, ServiceName, DropDate, TimelineSessionIds AS SessionIds
FROM otel_logs WHERE TraceId != '';

-- One row for each insert that has records of both: the first of them says when the trace was in the session.
CREATE MATERIALIZED VIEW IF NOT EXISTS otel_session_traces_mv TO otel_session_traces AS
SELECT ProjectId, arrayJoin(TimelineSessionIds) AS SessionId, TraceId, min(s.Timestamp) AS Timestamp, DropDate
FROM otel_traces AS s GROUP BY ProjectId, SessionId, TraceId, DropDate;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_session_traces_of_logs_mv TO otel_session_traces AS
SELECT ProjectId, arrayJoin(TimelineSessionIds) AS SessionId, TraceId, min(l.Timestamp) AS Timestamp, DropDate
FROM otel_logs AS l WHERE TraceId != '' GROUP BY ProjectId, SessionId, TraceId, DropDate;

INSERT INTO otel_trace_spans (ProjectId, TraceId, Timestamp, SpanId, RecordId, ServiceName, DropDate, SessionIds)
SELECT ProjectId, TraceId, Timestamp, SpanId, RecordId, ServiceName, DropDate, TimelineSessionIds FROM otel_traces
SETTINGS max_threads = 1, max_execution_time = 0, insert_deduplicate = 0, max_partitions_per_insert_block = 0;

INSERT INTO otel_trace_logs (ProjectId, TraceId, Timestamp, SpanId, RecordId, ServiceName, DropDate, SessionIds)
SELECT ProjectId, TraceId, Timestamp, SpanId, RecordId, ServiceName, DropDate, TimelineSessionIds FROM otel_logs
WHERE TraceId != ''
SETTINGS max_threads = 1, max_execution_time = 0, insert_deduplicate = 0, max_partitions_per_insert_block = 0;

INSERT INTO otel_session_traces (ProjectId, SessionId, TraceId, Timestamp, DropDate)
SELECT ProjectId, arrayJoin(SessionIds) AS SessionId, TraceId, min(s.Timestamp) AS Timestamp, DropDate
FROM otel_trace_spans AS s GROUP BY ProjectId, TraceId, SessionId, DropDate
SETTINGS max_threads = 1, optimize_aggregation_in_order = 1, max_execution_time = 0, insert_deduplicate = 0,
    max_partitions_per_insert_block = 0;

INSERT INTO otel_session_traces (ProjectId, SessionId, TraceId, Timestamp, DropDate)
SELECT ProjectId, arrayJoin(SessionIds) AS SessionId, TraceId, min(l.Timestamp) AS Timestamp, DropDate
FROM otel_trace_logs AS l GROUP BY ProjectId, TraceId, SessionId, DropDate
SETTINGS max_threads = 1, optimize_aggregation_in_order = 1, max_execution_time = 0, insert_deduplicate = 0,
    max_partitions_per_insert_block = 0;
