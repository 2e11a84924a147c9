-- Another granularity of the texts, for tests. `CREATE TABLE … AS payloads` takes the clauses of the text indexes along.
-- Reverse: the same with index_granularity = 128.
-- Skipped when: SELECT count() = 2 FROM system.tables WHERE database = currentDatabase() AND (name = 'ingest' OR (name = 'payloads' AND engine_full LIKE '%index_granularity = 256%'))
RENAME TABLE IF EXISTS ingest TO ingest_closed;

DROP TABLE IF EXISTS payloads_copy SYNC;

CREATE TABLE payloads_copy AS payloads
ENGINE = MergeTree PARTITION BY toMonday(drop_date) ORDER BY (project_id, ts, request_id) TTL drop_date
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 10000;

INSERT INTO payloads_copy SELECT * FROM payloads
SETTINGS max_threads = 1, max_partitions_per_insert_block = 0, insert_deduplicate = 0, max_execution_time = 0;

EXCHANGE TABLES payloads_copy AND payloads;

DROP TABLE payloads_copy SYNC;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
