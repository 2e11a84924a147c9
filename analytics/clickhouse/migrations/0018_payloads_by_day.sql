-- Texts and bodies by day of expiry, in the same steps as requests, for the same reasons: see 0017.
-- Reverse: the same with PARTITION BY toYYYYMM(drop_date).
-- Skipped when: SELECT count() = 2 FROM system.tables WHERE database = currentDatabase() AND (name = 'ingest' OR (name = 'payloads' AND partition_key = 'drop_date'))
RENAME TABLE IF EXISTS ingest TO ingest_closed;

DROP TABLE IF EXISTS payloads_by_day SYNC;

CREATE TABLE payloads_by_day AS payloads
ENGINE = MergeTree PARTITION BY drop_date ORDER BY (project_id, ts, request_id) TTL drop_date
SETTINGS index_granularity = 256, ttl_only_drop_parts = 1, merge_with_ttl_timeout = 3600,
    non_replicated_deduplication_window = 10000;

-- A block may touch more days than an INSERT usually may.
INSERT INTO payloads_by_day SELECT * FROM payloads
SETTINGS max_partitions_per_insert_block = 0, insert_deduplicate = 0, max_execution_time = 0;

EXCHANGE TABLES payloads_by_day AND payloads;

DROP TABLE payloads_by_day SYNC;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
