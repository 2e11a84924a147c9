-- Texts in granules of 128 rows, and what a search reads of them in blocks of 8 KB. For each request that the index leaves
-- a granule of five columns is read and unfolded, in blocks of 64 KB at least: 450 KB for one text of a few hundred
-- characters. With these it is a tenth, and a search that tries hundreds of requests costs half to a third. Bodies keep
-- their large blocks, which fold better; they are read for one request at a time.
-- `ingest` is away while the table is copied, and its text index is built again: see 0018. Every step may be broken off.
-- Reverse: the same with index_granularity = 256 and without the settings of columns.
-- Skipped when: SELECT count() = 2 FROM system.tables WHERE database = currentDatabase() AND (name = 'ingest' OR (name = 'payloads' AND engine_full LIKE '%index_granularity = 128%'))
RENAME TABLE IF EXISTS ingest TO ingest_closed;

DROP TABLE IF EXISTS payloads_small SYNC;

CREATE TABLE payloads_small AS payloads
ENGINE = MergeTree PARTITION BY toMonday(drop_date) ORDER BY (project_id, ts, request_id) TTL drop_date
SETTINGS index_granularity = 128, non_replicated_deduplication_window = 10000;

ALTER TABLE payloads_small MODIFY COLUMN project_id MODIFY SETTING min_compress_block_size = 8192;

ALTER TABLE payloads_small MODIFY COLUMN ts MODIFY SETTING min_compress_block_size = 8192;

ALTER TABLE payloads_small MODIFY COLUMN request_id MODIFY SETTING min_compress_block_size = 8192;

ALTER TABLE payloads_small MODIFY COLUMN prompt MODIFY SETTING min_compress_block_size = 8192;

ALTER TABLE payloads_small MODIFY COLUMN completion MODIFY SETTING min_compress_block_size = 8192;

INSERT INTO payloads_small SELECT * FROM payloads
SETTINGS max_threads = 1, max_partitions_per_insert_block = 0, insert_deduplicate = 0, max_execution_time = 0;

EXCHANGE TABLES payloads_small AND payloads;

DROP TABLE payloads_small SYNC;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
