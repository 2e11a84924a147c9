-- Requests by day of expiry, not by month: a row leaves within hours of its day, still without a mutation.
-- `ingest` goes away first and comes back last, so that no row arrives between the copy and the exchange: records wait in
-- the spool meanwhile. Every step may be broken off: the next run copies again from whichever table is `requests`.
-- Reverse: the same with PARTITION BY toYYYYMM(drop_date).
-- Skipped when: SELECT count() = 2 FROM system.tables WHERE database = currentDatabase() AND (name = 'ingest' OR (name = 'requests' AND partition_key = 'drop_date'))
RENAME TABLE IF EXISTS ingest TO ingest_closed;

DROP TABLE IF EXISTS requests_by_day SYNC;

CREATE TABLE requests_by_day AS requests
ENGINE = MergeTree PARTITION BY drop_date ORDER BY (project_id, ts, request_id) TTL drop_date
SETTINGS ttl_only_drop_parts = 1, merge_with_ttl_timeout = 3600, non_replicated_deduplication_window = 10000;

-- A block may touch more days than an INSERT usually may.
INSERT INTO requests_by_day SELECT * FROM requests
SETTINGS max_partitions_per_insert_block = 0, insert_deduplicate = 0, max_execution_time = 0;

EXCHANGE TABLES requests_by_day AND requests;

DROP TABLE requests_by_day SYNC;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
