-- Copies of the feedback on sessions that the SQL database keeps, replaced and read as the scores are. Feedback may name
-- the request whose answer it is about. A copy then has columns of that request, as copies of scores have, with its time,
-- source and outcome: how many of a version's answered requests were rated bad within a day, or edited before they were
-- used, is read without a join with the log. `request_known` is false while the request is not in the store, and without
-- one. `request_drop_date` is the day on which the request leaves the log and the figures, from which on it is not counted
-- here either.
CREATE TABLE IF NOT EXISTS feedback (
    project_id UUID, ts DateTime64(6, 'UTC') CODEC(Delta, LZ4), id UUID, version UInt64, is_deleted UInt8,
    session_id String, score UInt8, has_text Bool, drop_date Date,
    request_id UUID, request_known Bool, request_ts DateTime64(6, 'UTC'), request_drop_date Date,
    source LowCardinality(String), outcome LowCardinality(String), provider LowCardinality(String),
    model LowCardinality(String), prompt_config_id UUID, prompt_version UInt32, rollout_id UUID,
    variant LowCardinality(String), edited Bool
) ENGINE = ReplacingMergeTree(version, is_deleted) PARTITION BY toYYYYMM(drop_date) ORDER BY (project_id, ts, id)
TTL drop_date SETTINGS ttl_only_drop_parts = 0, index_granularity = 8192;
