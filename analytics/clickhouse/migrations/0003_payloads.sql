-- Texts and bodies, apart from the narrow rows. Small granules: one hit decompresses 256 texts, not 8192.
-- Kept for 90 days at most: they are forty times the size of everything else.
-- Reverse: drop the view, then the table; search and the content of requests are lost with it.
CREATE TABLE IF NOT EXISTS payloads (
    project_id UUID, ts DateTime64(6, 'UTC') CODEC(Delta, LZ4), request_id UUID, session_id String,
    prompt String CODEC(ZSTD(3)), completion String CODEC(ZSTD(3)),
    request String CODEC(ZSTD(3)), response String CODEC(ZSTD(3)), drop_date Date,
    $text_indexes
    INDEX i_request request_id TYPE bloom_filter(0.001) GRANULARITY 16
) ENGINE = MergeTree PARTITION BY toYYYYMM(drop_date) ORDER BY (project_id, ts, request_id) TTL drop_date
SETTINGS index_granularity = 256, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS payloads_mv TO payloads AS
SELECT
    project_id, ts, request_id, session_id, prompt, completion, request, response,
    toDate(i.ts, 'UTC') + least(i.retention_days, 90) AS drop_date
FROM ingest AS i WHERE i.request != '' OR i.response != '';
