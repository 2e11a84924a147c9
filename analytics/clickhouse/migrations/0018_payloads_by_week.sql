-- Texts and bodies by week of expiry: their rows leave one by one as well (see 0017), and writing a week of texts and
-- their index again each day is a quarter of the work that a month would be.
-- `ingest` goes away first and comes back last, so that no row arrives between the copy and the exchange: records wait in
-- the spool meanwhile. Every step may be broken off: the next run copies again from whichever table is `payloads`.
-- Reverse: the same with PARTITION BY toYYYYMM(drop_date).
-- Skipped when: SELECT count() = 2 FROM system.tables WHERE database = currentDatabase() AND (name = 'ingest' OR (name = 'payloads' AND partition_key = 'toMonday(drop_date)'))
RENAME TABLE IF EXISTS ingest TO ingest_closed;

DROP TABLE IF EXISTS payloads_by_week SYNC;

CREATE TABLE payloads_by_week AS payloads
ENGINE = MergeTree PARTITION BY toMonday(drop_date) ORDER BY (project_id, ts, request_id) TTL drop_date
SETTINGS index_granularity = 256, non_replicated_deduplication_window = 10000;

INSERT INTO payloads_by_week SELECT * FROM payloads
SETTINGS max_partitions_per_insert_block = 0, insert_deduplicate = 0, max_execution_time = 0;

EXCHANGE TABLES payloads_by_week AND payloads;

DROP TABLE payloads_by_week SYNC;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
