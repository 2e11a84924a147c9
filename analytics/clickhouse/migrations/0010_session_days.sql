-- Sessions as they go on: listed within a second of their first request. One row per session, day and user, in the order
-- of days, so that a list reads back from the newest day until its page is full, and the rows of a page lie together.
-- The former table was ordered by id: every page grouped all sessions there are. Sessions are hashes of 64 bits to group
-- and to find: among a million the chance that two are taken for one is 1 in 30 million. Small granules in small blocks
-- halve what a page or a session of weeks costs, and leave the cost of counting as it is.
-- `ingest` is away while the past is filled in, so that no record is counted twice or left out; shippers wait for it.
-- Every statement can run again: what is filled is emptied first.
-- Reverse: the table and view of 0008, filled from requests; drop the view, then the table.
RENAME TABLE IF EXISTS ingest_closed TO ingest;

CREATE TABLE IF NOT EXISTS session_days (
    project_id UUID, day Date, session_hash UInt64, session_id String, user_id String, drop_date Date,
    started_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')), ended_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    requests SimpleAggregateFunction(sum, UInt64), errors SimpleAggregateFunction(sum, UInt64),
    cancelled SimpleAggregateFunction(sum, UInt64), unpriced SimpleAggregateFunction(sum, UInt64),
    prompt_tokens SimpleAggregateFunction(sum, UInt64), completion_tokens SimpleAggregateFunction(sum, UInt64),
    cache_read_tokens SimpleAggregateFunction(sum, UInt64), cache_write_tokens SimpleAggregateFunction(sum, UInt64),
    cost_usd SimpleAggregateFunction(sum, Decimal(38, 10)), latency_sum_ms SimpleAggregateFunction(sum, UInt64),
    models SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    providers SimpleAggregateFunction(groupUniqArrayArray, Array(String)),
    INDEX i_session session_hash TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, day, session_hash, session_id, user_id, drop_date) TTL drop_date
SETTINGS index_granularity = 512, min_compress_block_size = 8192, ttl_only_drop_parts = 0,
    non_replicated_deduplication_window = 10000;

-- Inputs are qualified (i.): an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS session_days_mv TO session_days AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, cityHash64(i.session_id) AS session_hash, session_id, user_id,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    min(i.ts) AS started_at, max(i.ts) AS ended_at,
    count() AS requests, countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    groupUniqArrayIf(toString(i.provider), i.provider != '') AS providers
FROM ingest AS i WHERE i.session_id != ''
GROUP BY project_id, day, session_hash, session_id, user_id, drop_date;

RENAME TABLE IF EXISTS ingest TO ingest_closed;

TRUNCATE TABLE session_days;

-- Row by row and not grouped: each block is brought together as it is written, so no more than a block is in memory.
INSERT INTO session_days (
    project_id, day, session_hash, session_id, user_id, drop_date, started_at, ended_at, requests, errors, cancelled,
    unpriced, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens, cost_usd, latency_sum_ms, models,
    providers
)
SELECT
    project_id, toDate(i.ts, 'UTC'), cityHash64(i.session_id), session_id, user_id, drop_date, i.ts, i.ts,
    1, i.outcome IN ('error', 'interrupted'), i.outcome = 'cancelled', NOT i.cost_known,
    i.prompt_tokens, i.completion_tokens, i.cache_read_tokens, i.cache_write_tokens, i.cost_usd, i.latency_ms,
    if(i.model = '', [], [toString(i.model)]), if(i.provider = '', [], [toString(i.provider)])
FROM requests AS i WHERE i.session_id != ''
SETTINGS max_threads = 1, max_block_size = 65536, min_insert_block_size_rows = 262144, min_insert_block_size_bytes = 0,
    max_execution_time = 0, insert_deduplicate = 0, max_partitions_per_insert_block = 0, optimize_on_insert = 1;

DROP VIEW IF EXISTS sessions_mv;

DROP TABLE IF EXISTS sessions;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
