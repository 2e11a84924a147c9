-- Texts and bodies of requests, apart from the narrow rows and kept for 90 days at most: they are forty times the size
-- of everything else. The text indexes find texts by words, and by pairs of ideographs; their clauses are in
-- `analytics/clickhouse/text_index.py`. Granules of 128 rows, and blocks of 8 KB in the columns that a search reads:
-- for each request that the index leaves, a granule of five columns is read and decompressed. The usual 64 KB meant 450
-- KB for one text of a few hundred characters. Bodies keep large blocks, which compress better: they are read for one
-- request at a time. Partitions of a week of expiry, so that merges rewrite a week of texts and their index each day
-- and not a month.
CREATE TABLE IF NOT EXISTS payloads (
    project_id UUID SETTINGS (min_compress_block_size = 8192),
    ts DateTime64(6, 'UTC') CODEC(Delta, LZ4) SETTINGS (min_compress_block_size = 8192),
    request_id UUID SETTINGS (min_compress_block_size = 8192), session_id String,
    prompt String CODEC(ZSTD(3)) SETTINGS (min_compress_block_size = 8192),
    completion String CODEC(ZSTD(3)) SETTINGS (min_compress_block_size = 8192),
    request String CODEC(ZSTD(3)), response String CODEC(ZSTD(3)), drop_date Date,
    $text_indexes
    INDEX i_request request_id TYPE bloom_filter(0.001) GRANULARITY 16
) ENGINE = MergeTree PARTITION BY toMonday(drop_date) ORDER BY (project_id, ts, request_id) TTL drop_date
SETTINGS index_granularity = 128, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS payloads_mv TO payloads AS
SELECT
    project_id, ts, request_id, session_id, prompt, completion, request, response,
    toDate(i.ts, 'UTC') + least(i.retention_days, 90) AS drop_date
FROM ingest AS i WHERE i.request != '' OR i.response != '';
