-- Spans of applications, in the columns of the OpenTelemetry Collector's ClickHouse exporter, so that a collector and
-- the dashboards made for it can use the table. Four things are added: the project first in the key, the ids of the
-- sessions that a span belongs to, RecordId, by which a span that is sent again is the same row, and the day on which
-- it is dropped. A collector that writes here itself names the project in the resource attribute
-- `prompt_gateway.project_id`. The exporter's indexes on attributes are left out: no query uses them, and every insert
-- would pay for them. Expired spans go with the whole partition of their DropDate, without a mutation. Granules are
-- small, because rows are wide. `TimelineSessionIds` are the sessions in whose timelines a record counts: those of
-- `SessionIds`, which the telemetry endpoint goes by, and those that the attributes of common instrumentations name.
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
    TimelineSessionIds Array(String) MATERIALIZED arrayDistinct(arrayFilter(id -> id != '', arrayConcat(
        OtherSessionIds, [
        SpanAttributes['gen_ai.session_id'], SpanAttributes['llm.session_id'], SpanAttributes['session.id'],
        SpanAttributes['gen_ai.conversation.id'], SpanAttributes['session_id'],
        SpanAttributes['traceloop.association.properties.session_id'],
        SpanAttributes['ai.telemetry.metadata.sessionId'], SpanAttributes['ai.settings.context.sessionId'],
        SpanAttributes['langfuse.session.id'], SpanAttributes['langsmith.metadata.session_id'],
        SpanAttributes['mlflow.trace.session'], SpanAttributes['gcp.vertex.agent.session_id']]))),
    INDEX i_session SessionIds TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_trace TraceId TYPE bloom_filter(0.001) GRANULARITY 1
) ENGINE = ReplacingMergeTree PARTITION BY DropDate
ORDER BY (ProjectId, toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp, RecordId) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
