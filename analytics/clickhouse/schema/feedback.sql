-- Copies of the feedback on sessions that the SQL database keeps, replaced and read as the scores are.
CREATE TABLE IF NOT EXISTS feedback (
    project_id UUID, ts DateTime64(6, 'UTC') CODEC(Delta, LZ4), id UUID, version UInt64, is_deleted UInt8,
    session_id String, score UInt8, has_text Bool, drop_date Date
) ENGINE = ReplacingMergeTree(version, is_deleted) PARTITION BY toYYYYMM(drop_date) ORDER BY (project_id, ts, id)
TTL drop_date SETTINGS ttl_only_drop_parts = 0, index_granularity = 8192;
