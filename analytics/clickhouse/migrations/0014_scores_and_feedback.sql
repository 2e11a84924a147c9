-- Copies of the scores and the feedback that the SQL database keeps, for figures over many of them. A row is replaced by
-- one of a higher version, and a withdrawn one stays as a key and is_deleted: read with FINAL. The key is what never
-- changes in a row, and the order that of time: what is asked for is a range of time.
-- A score carries what its request says, looked up when it is copied: a join of a million scores with ten million
-- requests reads all of these.
-- No reasons and no texts: figures need none.
-- Reverse: drop both tables; analytics/copying/run.py says how to fill them again.
CREATE TABLE IF NOT EXISTS scores (
    project_id UUID, ts DateTime64(6, 'UTC') CODEC(Delta, LZ4), id UUID, version UInt64, is_deleted UInt8,
    request_id String, score_name LowCardinality(String), score_type LowCardinality(String),
    evaluator_type LowCardinality(String), score_value Float64, score_label String,
    request_known Bool, provider LowCardinality(String), model LowCardinality(String),
    prompt_config_id UUID, prompt_version UInt32, rollout_id UUID, variant LowCardinality(String), drop_date Date
) ENGINE = ReplacingMergeTree(version, is_deleted) PARTITION BY toYYYYMM(drop_date) ORDER BY (project_id, ts, id)
TTL drop_date SETTINGS ttl_only_drop_parts = 0;

CREATE TABLE IF NOT EXISTS feedback (
    project_id UUID, ts DateTime64(6, 'UTC') CODEC(Delta, LZ4), id UUID, version UInt64, is_deleted UInt8,
    session_id String, score UInt8, has_text Bool, drop_date Date
) ENGINE = ReplacingMergeTree(version, is_deleted) PARTITION BY toYYYYMM(drop_date) ORDER BY (project_id, ts, id)
TTL drop_date SETTINGS ttl_only_drop_parts = 0;
