-- Log records of applications, in the columns of the OpenTelemetry Collector's ClickHouse exporter. The additions and
-- omissions of otel_traces apply here too.
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
    TimelineSessionIds Array(String) MATERIALIZED arrayDistinct(arrayFilter(id -> id != '', arrayConcat(
        OtherSessionIds, [
        LogAttributes['gen_ai.session_id'], LogAttributes['llm.session_id'], LogAttributes['session.id'],
        LogAttributes['gen_ai.conversation.id'], LogAttributes['session_id'],
        LogAttributes['traceloop.association.properties.session_id'],
        LogAttributes['ai.telemetry.metadata.sessionId'], LogAttributes['ai.settings.context.sessionId'],
        LogAttributes['langfuse.session.id'], LogAttributes['langsmith.metadata.session_id'],
        LogAttributes['mlflow.trace.session'], LogAttributes['gcp.vertex.agent.session_id']]))),
    INDEX i_session SessionIds TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_trace TraceId TYPE bloom_filter(0.001) GRANULARITY 1
) ENGINE = ReplacingMergeTree PARTITION BY DropDate
ORDER BY (ProjectId, toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp, RecordId) TTL DropDate
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
