-- Another granularity of the requests, for tests: two sources are away while the table is copied.
-- Reverse: the same with index_granularity = 1024.
-- Skipped when: SELECT count() = 3 FROM system.tables WHERE database = currentDatabase() AND (name IN ('ingest', 'anonymised') OR (name = 'requests' AND engine_full LIKE '%index_granularity = 512%'))
RENAME TABLE IF EXISTS ingest TO ingest_closed;

RENAME TABLE IF EXISTS anonymised TO anonymised_closed;

DROP TABLE IF EXISTS requests_copy SYNC;

CREATE TABLE requests_copy AS requests
ENGINE = MergeTree PARTITION BY toYYYYMM(drop_date) ORDER BY (project_id, ts, request_id) TTL drop_date
SETTINGS index_granularity = 512, min_compress_block_size = 16384, ttl_only_drop_parts = 0,
    non_replicated_deduplication_window = 10000;

INSERT INTO requests_copy SELECT * FROM requests
SETTINGS max_threads = 1, max_block_size = 65536, min_insert_block_size_rows = 1000000,
    min_insert_block_size_bytes = 100000000, max_partitions_per_insert_block = 0, insert_deduplicate = 0,
    max_execution_time = 0;

EXCHANGE TABLES requests_copy AND requests;

DROP TABLE requests_copy SYNC;

RENAME TABLE IF EXISTS anonymised_closed TO anonymised;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
