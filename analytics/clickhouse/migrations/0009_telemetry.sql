-- Spans and logs of applications, in the columns of the OpenTelemetry Collector's ClickHouse exporter, so that a
-- collector and dashboards made for it can use the same tables. Ours besides: the project first in the key, the ids of
-- sessions a record belongs to, what makes a resent record the same one (RecordId), and the day it is dropped.
-- A collector that writes here itself says the project in the resource attribute `prompt_gateway.project_id`.
-- The exporter's indexes on attributes are left out: nothing here asks by them, and every insert would pay for them.
-- Records go with the whole partition of their DropDate, without a mutation. Small granules, because rows are wide.
-- The tables are ordered by time, for dashboards. A session's records lie scattered over them, so two tables beside them
-- hold their keys in the order of sessions: measured on 3 million spans, 500 of a session's 20,000 take 50 ms of CPU in
-- place of 420 ms with the index of SessionIds alone.
-- A session may have keys in every part, so these have few: partitions of a week, from which merges take expired rows.
-- Reverse: drop the views, then the tables; telemetry is lost with them.
CREATE TABLE IF NOT EXISTS otel_traces (
    ProjectId UUID DEFAULT toUUIDOrZero(ResourceAttributes['prompt_gateway.project_id']),
    Timestamp DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)),
    TraceId String CODEC(ZSTD(1)), SpanId String CODEC(ZSTD(1)), ParentSpanId String CODEC(ZSTD(1)),
    TraceState String CODEC(ZSTD(1)), SpanName LowCardinality(String), SpanKind LowCardinality(String),
    ServiceName LowCardinality(String), ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)), ScopeVersion String CODEC(ZSTD(1)),
    SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)), Duration UInt64 CODEC(T64, ZSTD(1)),
    StatusCode LowCardinality(String), StatusMessage String CODEC(ZSTD(1)),
    Events Nested (
        Timestamp DateTime64(9, 'UTC'), Name LowCardinality(String), Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1)),
    Links Nested (
        TraceId String, SpanId String, TraceState String, Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1)),
    RecordId UInt64 DEFAULT cityHash64(TraceId, SpanId, SpanName, Duration),
    OtherSessionIds Array(String),
    SessionIds Array(String) MATERIALIZED arrayDistinct(arrayFilter(id -> id != '', arrayConcat(
        [SpanAttributes['gen_ai.session_id'], SpanAttributes['llm.session_id']], OtherSessionIds))),
    DropDate Date DEFAULT today() + 30,
    INDEX i_session SessionIds TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_trace TraceId TYPE bloom_filter(0.001) GRANULARITY 1
) ENGINE = ReplacingMergeTree PARTITION BY DropDate
ORDER BY (ProjectId, toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp, RecordId) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS otel_logs (
    ProjectId UUID DEFAULT toUUIDOrZero(ResourceAttributes['prompt_gateway.project_id']),
    Timestamp DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)), TimestampTime DateTime ALIAS toDateTime(Timestamp),
    TraceId String CODEC(ZSTD(1)), SpanId String CODEC(ZSTD(1)), TraceFlags UInt8,
    SeverityText LowCardinality(String), SeverityNumber UInt8, ServiceName LowCardinality(String),
    Body String CODEC(ZSTD(1)), ResourceSchemaUrl LowCardinality(String),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)), ScopeSchemaUrl LowCardinality(String),
    ScopeName String CODEC(ZSTD(1)), ScopeVersion LowCardinality(String),
    ScopeAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    LogAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)), EventName String CODEC(ZSTD(1)),
    RecordId UInt64 DEFAULT cityHash64(TraceId, SpanId, SeverityNumber, Body, toString(LogAttributes)),
    OtherSessionIds Array(String),
    SessionIds Array(String) MATERIALIZED arrayDistinct(arrayFilter(id -> id != '', arrayConcat(
        [LogAttributes['gen_ai.session_id'], LogAttributes['llm.session_id']], OtherSessionIds))),
    DropDate Date DEFAULT today() + 30,
    INDEX i_session SessionIds TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_trace TraceId TYPE bloom_filter(0.001) GRANULARITY 1
) ENGINE = ReplacingMergeTree PARTITION BY DropDate
ORDER BY (ProjectId, toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp, RecordId) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS otel_session_spans (
    ProjectId UUID, SessionId String, Timestamp DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)), SpanId String,
    RecordId UInt64, ServiceName LowCardinality(String), DropDate Date
) ENGINE = ReplacingMergeTree PARTITION BY toMonday(DropDate)
ORDER BY (ProjectId, SessionId, Timestamp, SpanId, RecordId) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_session_spans_mv TO otel_session_spans AS
SELECT ProjectId, arrayJoin(SessionIds) AS SessionId, Timestamp, SpanId, RecordId, ServiceName, DropDate
FROM otel_traces;

CREATE TABLE IF NOT EXISTS otel_session_logs (
    ProjectId UUID, SessionId String, Timestamp DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)), SpanId String,
    RecordId UInt64, ServiceName LowCardinality(String), DropDate Date
) ENGINE = ReplacingMergeTree PARTITION BY toMonday(DropDate)
ORDER BY (ProjectId, SessionId, Timestamp, SpanId, RecordId) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_session_logs_mv TO otel_session_logs AS
SELECT ProjectId, arrayJoin(SessionIds) AS SessionId, Timestamp, SpanId, RecordId, ServiceName, DropDate
FROM otel_logs;
