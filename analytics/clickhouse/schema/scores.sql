-- Copies of the scores that the SQL database keeps, for figures over many of them. A row is replaced by one of a higher
-- version, and a withdrawn score stays as a key with is_deleted, so the table is read with FINAL. The key has only
-- columns that never change, in the order of time, because every query names a range of time. A score carries columns
-- of its request, which are looked up when it is copied: a join of a million scores with ten million requests reads all
-- of these. Reasons and texts are left out, because no figure needs them.
CREATE TABLE IF NOT EXISTS scores (
    project_id UUID, ts DateTime64(6, 'UTC') CODEC(Delta, LZ4), id UUID, version UInt64, is_deleted UInt8,
    request_id String, score_name LowCardinality(String), score_type LowCardinality(String),
    evaluator_type LowCardinality(String), score_value Float64, score_label String,
    request_known Bool, provider LowCardinality(String), model LowCardinality(String),
    prompt_config_id UUID, prompt_version UInt32, rollout_id UUID, variant LowCardinality(String), drop_date Date
) ENGINE = ReplacingMergeTree(version, is_deleted) PARTITION BY toYYYYMM(drop_date) ORDER BY (project_id, ts, id)
TTL drop_date SETTINGS ttl_only_drop_parts = 0, index_granularity = 8192;
