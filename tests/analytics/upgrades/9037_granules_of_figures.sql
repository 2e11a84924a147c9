-- Another granularity of a table of figures, as an example of a table that is copied, and for tests.
-- `ingest` is away while the table is copied, so that no row arrives between the copy and the exchange. Every step may
-- be broken off: the next run copies again from whichever table has the name.
-- Reverse: the same with index_granularity = 256.
-- Skipped when: SELECT count() = 2 FROM system.tables WHERE database = currentDatabase() AND (name = 'ingest' OR (name = 'requests_hourly' AND engine_full LIKE '%index_granularity = 512%'))
RENAME TABLE IF EXISTS ingest TO ingest_closed;

DROP TABLE IF EXISTS requests_hourly_copy SYNC;

CREATE TABLE IF NOT EXISTS requests_hourly_copy AS requests_hourly
ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
ORDER BY (project_id, hour, provider, model, drop_date, operation) TTL drop_date
SETTINGS index_granularity = 512, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000;

-- A state of percentiles in memory is many times its size on disk, so few rows are copied at a time.
INSERT INTO requests_hourly_copy SELECT * FROM requests_hourly
SETTINGS max_threads = 1, max_block_size = 8192, min_insert_block_size_rows = 8192, min_insert_block_size_bytes = 0,
    max_partitions_per_insert_block = 0, insert_deduplicate = 0, max_execution_time = 0;

EXCHANGE TABLES requests_hourly_copy AND requests_hourly;

DROP TABLE IF EXISTS requests_hourly_copy SYNC;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
